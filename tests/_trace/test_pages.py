"""The page of a trace."""

from __future__ import annotations

from typing import Any

import pytest

from pytensor_fuse.reports import Trace
from support.web.browser import Browser


def test_a_page_of_many_calls_is_of_a_size_to_open(trace: Trace) -> None:
    plain = trace.to_dict()
    calls = [{**call, "began": call["began"] + n} for n in range(100) for call in plain["calls"]]
    page = Trace.from_dict({**plain, "calls": calls}).to_html()
    assert "200" in page
    assert len(page) < 3e6


def test_a_file_that_cannot_be_written(trace: Trace, tmp_path: Any) -> None:
    with pytest.raises(OSError, match="nowhere"):
        trace.to_html(tmp_path / "nowhere" / "trace.html")
    with pytest.raises(IsADirectoryError):
        trace.to_html(tmp_path)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page(trace: Trace, browser: Browser, tmp_path: Any, scheme: str) -> None:
    path = tmp_path / "trace.html"
    assert trace.to_html(path) is None
    assert path.stat().st_size < 5e6
    with browser.scheme(scheme):
        assert browser.open(path) < 3
        # Search: fewer rows of tables.
        browser.run(
            "const s = document.getElementById('search'); s.value = 'canonicalize';"
            "s.dispatchEvent(new Event('input'));"
        )
        hidden = "return document.querySelectorAll('table.sorted tr[hidden]').length"
        assert browser.run(hidden) > 0
        browser.run(
            "const s = document.getElementById('search'); s.value = '';"
            "s.dispatchEvent(new Event('input'));"
        )
        assert browser.run(hidden) == 0
        # Tables sort by what one clicks on.
        browser.run(
            "[...document.querySelectorAll('table.sorted th')]"
            ".find((h) => h.textContent === 'tried').click();"
        )
        column = browser.run(
            "return [...document.querySelectorAll('table.sorted')[0].tBodies[0].rows]"
            ".map((row) => Number(row.cells[1].dataset.value))"
        )
        assert column == sorted(column, reverse=True)
        browser.assert_clean()
