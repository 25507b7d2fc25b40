"""What people do to the picture of a plan, in a headless Chromium: point, click, search, type."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph

import pytensor_fuse
from support.graphs import reverse
from support.web.browser import Browser
from support.web.plans import click_button, model, move_to, open_plan, press, search, shown, state


def test_hovering_tells_what_a_node_is(browser: Browser, tmp_path: Path) -> None:
    x = pt.tensor("x", dtype="float32", shape=(None, 3))
    y = pt.exp(x)  # this line
    y.name = "a <b>name</b>"
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [pt.sin(y)], clone=False))
    open_plan(browser, tmp_path, plan)
    node = next(i for i, n in enumerate(plan._picture.nodes) if n.op == "Exp")
    move_to(browser, browser.run("return plan.nodeAt(arguments[0])", node))
    tip = shown(browser, "tip")
    line = plan._picture.nodes[node].source_line
    parts = ["Exp", "a <b>name</b>", "float32 (?, 3)", f"{line.file}:{line.line}", "# this line"]
    assert [part for part in parts if part not in tip] == []
    move_to(browser, [2, 300])
    assert browser.run("return document.getElementById('tip').hidden")


def test_hovering_tells_what_a_constant_is(browser: Browser, tmp_path: Path) -> None:
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.exp(x), pt.constant(3.0)], clone=False)
    plan = pytensor_fuse.plan_fusion(fgraph)
    open_plan(browser, tmp_path, plan)
    move_to(browser, browser.run("return plan.nodeAt(arguments[0])", 2))
    lines = shown(browser, "tip").splitlines()
    assert lines[:4] == ["3", "constant", "float32 ()", "result 1 of the graph"]
    browser.assert_clean()


def test_clicking_an_edge_tells_why_it_was_not_fused(browser: Browser, tmp_path: Path) -> None:
    x = pt.vector("x")
    a = pt.sin(x)
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [a + reverse(a)], clone=False))
    open_plan(browser, tmp_path, plan)
    picture = plan._picture
    assert len(picture.paths) == 1
    for i, edge in enumerate(picture.edges):
        move_to(browser, browser.run("return plan.lineAt(arguments[0])", i), click=1)
        assert state(browser)["line"] == [i]
        expected = "reads an input" if edge.why is None else f"not fused: {edge.why}"
        assert expected in shown(browser, "panel").splitlines()


def test_an_edge_between_collapsed_kernels_tells_of_all(browser: Browser, tmp_path: Path) -> None:
    plan = model(500)
    open_plan(browser, tmp_path, plan)
    picture = plan._picture
    pair, group = next(
        (pair, group)
        for pair, group in picture.box_edges().items()
        if len(group) > 1 and picture.edges[group[0]].why and pair in plan._drawing.edges
    )
    browser.run("plan.zoom(0.9)")
    move_to(browser, browser.run("return plan.lineAt(arguments[0])", group[0]), click=1)
    assert sorted(state(browser)["line"]) == sorted(group), pair
    for reason in {str(picture.edges[i].why) for i in group}:
        assert f"not fused: {reason}" in shown(browser, "panel")


def test_the_path_of_a_cycle_is_lit(browser: Browser, tmp_path: Path) -> None:
    x = pt.vector("x")
    a = pt.sin(x)
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [a + reverse(a)], clone=False))
    open_plan(browser, tmp_path, plan)
    ((edge, (path, _)),) = plan._picture.paths.items()
    move_to(browser, browser.run("return plan.lineAt(arguments[0])", edge), click=1)
    steps = {
        i
        for i, e in enumerate(plan._picture.edges)
        if (e.source, e.target) in set(itertools.pairwise(path))
    }
    assert set(state(browser)["lit"]) == steps | {edge}


def test_a_long_path_is_cut_where_it_is_told(browser: Browser, tmp_path: Path) -> None:
    x = pt.vector("x")
    out = first = pt.exp(x)
    for _ in range(40):
        out = reverse(pt.cumsum(out))
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [first * out], clone=False))
    open_plan(browser, tmp_path, plan)
    ((edge, (path, left_out)),) = plan._picture.paths.items()
    assert left_out == 52
    # What only passes something on is in one box at first.
    [row] = [i for i, box in enumerate(plan._picture.boxes) if len(box.nodes) > 1]
    assert plan._picture.boxes[row].label == "80 nodes in a row"
    click_button(browser, "expand")
    browser.run(
        "const [x, y] = plan.lineAt(arguments[0]); plan.zoom(1 / plan.state().scale, x, y);", edge
    )
    move_to(browser, browser.run("return plan.lineAt(arguments[0])", edge), click=1)
    text = shown(browser, "panel")
    assert f"not fused: {plan._picture.edges[edge].why}" in text.splitlines()
    assert "... (52 more)" in text
    assert len(state(browser)["lit"]) == len(path) - 1
    browser.assert_clean()


def test_ends_of_edges_lead_to_whole_ones(browser: Browser, tmp_path: Path) -> None:
    x = pt.vector("x")
    outputs = [reverse(pt.cumsum(x * i)) for i in range(210)]
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], outputs, clone=False))
    open_plan(browser, tmp_path, plan)
    assert "Short ends" in shown(browser, "panel")
    drawing, picture = plan._drawing, plan._picture
    assert len(drawing.hidden) == 210
    (edge,) = picture.box_edges()[drawing.hidden[100]]
    target = picture.edges[edge].target
    browser.run(
        "const [x, y] = plan.nodeAt(arguments[0]); plan.zoom(1 / plan.state().scale, x, y);", target
    )
    move_to(browser, browser.run("return plan.lineAt(arguments[0])", edge), click=1)
    assert state(browser)["line"] == [edge]
    assert f"not fused: {picture.edges[edge].why}" in shown(browser, "panel")
    source = picture.nodes[picture.edges[edge].source].box
    move_to(browser, browser.run("return plan.nodeAt(arguments[0])", target), click=1)
    assert edge in state(browser)["lit"]
    assert picture.boxes[source].kernel is not None


def test_searching_jumps_and_highlights(browser: Browser, tmp_path: Path) -> None:
    plan = model(500)
    open_plan(browser, tmp_path, plan)
    nodes = plan._picture.nodes
    for text, expected in [
        ("exp", [i for i, n in enumerate(nodes) if "exp" in n.op.lower()]),
        ("TOTAL", [i for i, n in enumerate(nodes) if "total" in n.names]),
        ("the scale", [i for i, n in enumerate(nodes) if n.label == "the scale"]),
        ("float64 (?,)", [i for i, n in enumerate(nodes) if "float64 (?,)" in n.types]),
    ]:
        search(browser, text)
        assert state(browser)["found"] == expected
        assert shown(browser, "found") == f"1 of {len(expected)}"
        x, y = browser.run("return plan.nodeAt(arguments[0])", expected[0])
        middle = browser.run(
            "const r = document.getElementById('picture').getBoundingClientRect(); "
            "return [r.left + r.width / 2, r.top + r.height / 2]"
        )
        assert [x, y] == pytest.approx(middle, abs=1)
        assert state(browser)["node"] == expected[0]
    search(browser, "exp")
    press(browser, "Enter")
    assert shown(browser, "found").startswith("2 of ")
    search(browser, "no such op")
    assert shown(browser, "found") == "nothing found"
    assert state(browser)["found"] == []
    browser.assert_clean()


def test_kernels_open_and_close(browser: Browser, tmp_path: Path) -> None:
    plan = model(500)
    open_plan(browser, tmp_path, plan)
    kernel = next(i for i, box in enumerate(plan._picture.boxes) if box.kernel is not None)
    closed = browser.run("return plan.places()")
    collapsed = plan._drawing.collapsed
    n_boxes = len(plan._picture.boxes)
    left = [x - w / 2 for x, w in zip(collapsed.x, collapsed.widths, strict=False)]
    top = [y - h / 2 for y, h in zip(collapsed.y, collapsed.heights, strict=False)]
    # The page arranges by itself what the core has arranged before.
    assert closed["left"][:n_boxes] == pytest.approx(left, abs=1)
    assert closed["top"][:n_boxes] == pytest.approx(top, abs=3)
    before = state(browser)["nLines"]

    move_to(browser, browser.run("return plan.boxAt(arguments[0])", kernel), click=2)
    assert [i for i, is_open in enumerate(state(browser)["open"]) if is_open] == [kernel]
    assert state(browser)["nLines"] > before
    places = browser.run("return plan.places()")
    assert places["width"][kernel] == pytest.approx(plan._drawing.expanded.widths[kernel], abs=1)
    boxes = list(
        zip(*(places[k][:n_boxes] for k in ("left", "top", "width", "height")), strict=True)
    )
    x, y, w, h = boxes[kernel]
    for i, (left_, top_, width, height) in enumerate(boxes):
        apart = left_ >= x + w or left_ + width <= x or top_ >= y + h or top_ + height <= y
        assert apart or i == kernel, "what is open does not cover others"

    browser.run(
        "const [x, y] = plan.boxAt(arguments[0]); plan.zoom(1 / plan.state().scale, x, y);", kernel
    )
    move_to(browser, browser.run("return plan.toggleAt(arguments[0])", kernel), click=1)
    assert not any(state(browser)["open"])
    assert browser.run("return plan.places()") == closed
    assert state(browser)["nLines"] == before
    browser.assert_clean()


def test_the_keyboard_is_enough(browser: Browser, tmp_path: Path) -> None:
    plan = model(500)
    open_plan(browser, tmp_path, plan)
    press(browser, "e")
    assert state(browser)["open"] == [len(box.nodes) > 1 for box in plan._picture.boxes]
    press(browser, "c")
    assert sum(state(browser)["open"]) == 0
    press(browser, "f")
    scale = state(browser)["scale"]
    press(browser, "+")
    assert state(browser)["scale"] > scale
    press(browser, "f")
    assert state(browser)["scale"] == scale
    press(browser, "/")
    assert browser.run("return document.activeElement.id") == "search"
    press(browser, "Escape")
    assert browser.run("return document.activeElement.id") == "picture"
    press(browser, "]")
    first = state(browser)["node"]
    assert first is not None
    press(browser, "]")
    reader = next(e.target for e in plan._picture.edges if e.source == first)
    assert state(browser)["node"] == reader
    press(browser, "[")
    read = next(e.source for e in plan._picture.edges if e.target == reader)
    assert state(browser)["node"] == read
    press(browser, "Escape")
    assert state(browser)["node"] is None
    browser.assert_clean()


KEYS = (*"][ecf+-", "Enter", "Escape", "ArrowLeft", "ArrowUp")


def test_keys_of_a_graph_of_nothing(browser: Browser, tmp_path: Path) -> None:
    open_plan(browser, tmp_path, pytensor_fuse.plan_fusion(FunctionGraph([], [], clone=False)))
    for key in KEYS:
        press(browser, key)
    assert state(browser)["node"] is None
    browser.assert_clean()


def test_keys_work_after_a_button_of_the_toolbar(browser: Browser, tmp_path: Path) -> None:
    plan = model(500)
    open_plan(browser, tmp_path, plan)
    browser.driver.find_element("id", "expand").click()
    assert browser.run("return document.activeElement.id") == "expand"
    press(browser, "c")
    assert not any(state(browser)["open"])
    # But this is the button's.
    press(browser, "]")
    press(browser, "Enter")
    assert state(browser)["node"] is not None
