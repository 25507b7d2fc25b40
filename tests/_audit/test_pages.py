"""Pages of audits in the browser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph

from pytensor_fuse import audit
from pytensor_fuse.reports import Audit
from support.web.browser import Browser


def of_nodes(n_nodes: int) -> Audit:
    x = out = pt.matrix("x <script>alert(1)</script> & \"'")
    for _ in range(n_nodes // 4):
        out = pt.sin(out.T) + pt.cos(out)
    fgraph = FunctionGraph([x], [out, pt.concatenate([x, out])], clone=False)
    return audit(fgraph, shapes={x: (9, 9)})


def regression() -> Audit:
    """An audit that has something in each of its tables."""
    x, y = pt.matrix("x"), pt.vector("y")
    covariance = x @ x.T + pt.eye(x.shape[0])
    factor = pt.linalg.cholesky(covariance)
    residual = pt.linalg.solve_triangular(factor, y, lower=True)
    function = pytensor.function([x, y], [(residual**2).sum(), factor, x.T], mode="CVM")
    return audit(function, shapes={x: (50, 3), y: (50,)})


def open_audit(browser: Browser, directory: Path, found: Audit) -> float:
    path = directory / "audit.html"
    found.to_html(path)
    seconds = browser.open(path)
    browser.assert_clean()
    return seconds


@pytest.mark.parametrize("n_nodes", [20, 500, 10_000])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_audits_of_three_sizes_open_soon(
    browser: Browser, tmp_path: Path, n_nodes: int, scheme: str
) -> None:
    with browser.scheme(scheme):
        assert open_audit(browser, tmp_path, of_nodes(n_nodes)) < 3
        assert (tmp_path / "audit.html").stat().st_size < 1e6
        text = browser.run("return document.body.innerText")
    assert f"{n_nodes + 1:,} nodes" in text
    assert "live at the peak" in text


def test_names_are_text(browser: Browser, tmp_path: Path) -> None:
    open_audit(browser, tmp_path, of_nodes(20))
    assert browser.run("return document.querySelectorAll('script').length") == 0
    assert "<script>alert(1)</script> & \"'" in browser.run("return document.body.innerText")


def test_every_section_is_there(browser: Browser, tmp_path: Path) -> None:
    found = regression()
    open_audit(browser, tmp_path, found)
    heads = browser.run("return [...document.querySelectorAll('h2')].map(h => h.innerText)")
    assert heads == ["Matrices", "Memory", "Kernels", "Caching", "Native", "Ops"]
    rows = browser.run("return document.querySelectorAll('tr').length")
    assert rows > len(found.kernels.kernels) + len(found.memory.copies)


@pytest.mark.parametrize("width", [480, 1280])
def test_nothing_is_wider_than_the_window(browser: Browser, tmp_path: Path, width: int) -> None:
    browser.resize(width, 800)
    try:
        open_audit(browser, tmp_path, regression())
        assert browser.run("return document.documentElement.scrollWidth") <= width
    finally:
        browser.resize(1280, 800)


def test_the_widest_bar_is_that_of_the_largest(browser: Browser, tmp_path: Path) -> None:
    found = regression()
    open_audit(browser, tmp_path, found)
    widths = browser.run(
        "const head = [...document.querySelectorAll('h3')].find(h => h.innerText == 'Copies');"
        "return [...head.nextElementSibling.querySelectorAll('td.bar i')]"
        ".map(bar => bar.getBoundingClientRect().width);"
    )
    sizes = np.array([copy.nbytes for copy in found.memory.copies], dtype=float)
    np.testing.assert_allclose(np.array(widths) / widths[0], sizes / sizes[0], atol=0.02)
