"""The page of a trace, and its flame chart."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from pytensor_fuse import Trace
from pytensor_fuse._trace.flame_chart import flame_chart
from support.browser import Browser


def test_boxes(trace: Trace) -> None:
    boxes, width = flame_chart([*trace.calls, *trace.outside])
    calls = [box for box in boxes if box.depth == 0]
    assert sum(box.width for box in calls) <= width
    for n, box in enumerate(boxes):
        assert box.start >= -1e-9
        assert box.start + box.width <= width + 1e-6
        # What is drawn below is within what is above it.
        above = [
            other
            for other in boxes[:n]
            if other.depth in (box.depth - 1, box.depth - 2)
            and other.kind != "round"
            and other.start <= box.start + 1e-4
            and other.start + other.width >= box.start + box.width - 1e-4
        ]
        assert above or box.depth == 0, box
    by_depth: dict[int, list[Any]] = {}
    for box in boxes:
        by_depth.setdefault(box.depth, []).append(box)
    for row in by_depth.values():
        row.sort(key=lambda box: box.start)
        for first, second in pairwise(row):
            assert first.start + first.width <= second.start + 1e-4, (first, second)


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
        n = browser.run("return document.querySelectorAll('#chart rect').length")
        assert n > 20
        assert (
            "</script><b>&\"'"
            in browser.run("return document.querySelector('#chart text:not(.k-axis)').textContent")
            or browser.run("return document.querySelectorAll('#chart text').length") > 3
        )
        # Search: fewer rows of tables, and boxes that are marked.
        browser.run(
            "const s = document.getElementById('search'); s.value = 'canonicalize';"
            "s.dispatchEvent(new Event('input'));"
        )
        assert browser.run("return document.querySelectorAll('rect.found').length") >= 2
        assert "boxes" in browser.run("return document.getElementById('found').textContent")
        hidden = "return document.querySelectorAll('table.sorted tr[hidden]').length"
        assert browser.run(hidden) > 0
        browser.run(
            "const s = document.getElementById('search'); s.value = '';"
            "s.dispatchEvent(new Event('input'));"
        )
        assert browser.run(hidden) == 0
        # A click looks closer, and says what the box is.
        browser.run(
            "const box = [...document.querySelectorAll('rect')]"
            ".find((r) => r.bar.name === 'canonicalize');"
            "box.dispatchEvent(new MouseEvent('click', {bubbles: true}));"
        )
        assert browser.run("return document.getElementById('details').textContent").startswith(
            "canonicalize"
        )
        wide = browser.run(
            "return Number(document.querySelector('rect.chosen').getAttribute('width'))"
        )
        assert wide > 500
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
