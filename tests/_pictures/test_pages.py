"""Pictures of plans as people open them, in a headless Chromium."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph

import pytensor_fuse
from pytensor_fuse.reports import FusionPlan
from support.graphs import reverse
from support.web.browser import Browser


def model(n_nodes: int) -> FusionPlan:
    """A plan of about that many nodes: blocks of kernels and reversals under one sum."""
    x, scale = pt.vectors("x", "scale")
    scale.name = "the scale"
    n_blocks = max(1, n_nodes // 20)
    outputs = []
    for i in range(n_blocks):
        out = x * i
        for _ in range(3):
            out = pt.sin(reverse(out) * scale) + pt.exp(out) / 3
        outputs.append(out)
    total = pt.add(*outputs) if len(outputs) > 1 else outputs[0]
    total.name = "total"
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x, scale], [total], clone=False))
    assert 0.7 * n_nodes <= plan.stats.nodes <= 1.3 * n_nodes, plan.stats.nodes
    return plan


def chain(n_nodes: int) -> FusionPlan:
    """A plan of small kernels in a row, each kept from the next by a transpose."""
    out = x = pt.matrix("x")
    for _ in range(n_nodes // 4):
        out = pt.sin(out.T) + pt.cos(out)
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [out], clone=False))
    assert plan.stats.nodes == n_nodes
    return plan


def open_plan(browser: Browser, directory: Path, plan: FusionPlan) -> float:
    path = directory / "plan.html"
    plan.to_html(path)
    seconds = browser.open(path)
    browser.assert_clean()
    # All of it on the screen; how a page begins has tests of its own.
    browser.run("plan.fit()")
    browser.settle()
    return seconds


def move_to(browser: Browser, place: list[float], *, click: int = 0) -> None:
    """Move the mouse there as a hand does, and click."""
    x, y = place
    common = {"x": x, "y": y, "button": "left"}

    def send(kind: str, **more: object) -> None:
        browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, **common, **more})

    send("mouseMoved", button="none")
    for count in range(1, click + 1):
        send("mousePressed", clickCount=count)
        send("mouseReleased", clickCount=count)
    browser.settle()


def press(browser: Browser, key: str) -> None:
    kinds = ("keyDown", "keyUp")
    for kind in kinds:
        text = {"text": key} if kind == "keyDown" and len(key) == 1 else {}
        browser.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": kind, "key": key, **text})
    browser.settle()


def state(browser: Browser) -> dict:
    return browser.run("return plan.state()")


def shown(browser: Browser, name: str) -> str:
    return browser.run("return document.getElementById(arguments[0]).innerText", name)


def click_button(browser: Browser, name: str) -> None:
    browser.run("document.getElementById(arguments[0]).click()", name)
    browser.settle()


def search(browser: Browser, text: str) -> None:
    browser.run(
        "const field = document.getElementById('search'); field.focus(); "
        "field.value = arguments[0]; field.dispatchEvent(new Event('input', {bubbles: true}));",
        text,
    )
    browser.settle()


@pytest.mark.parametrize(("n_nodes", "megabytes"), [(20, 0.1), (500, 0.3), (10_000, 5.0)])
@pytest.mark.parametrize("make", [model, chain])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_plans_of_three_sizes_open_soon(
    browser: Browser,
    tmp_path: Path,
    n_nodes: int,
    megabytes: float,
    make: Callable[[int], FusionPlan],
    scheme: str,
) -> None:
    with browser.scheme(scheme):
        assert open_plan(browser, tmp_path, make(n_nodes)) < 3
        assert (tmp_path / "plan.html").stat().st_size < megabytes * 1e6
        before = state(browser)
        assert not any(before["open"]) or n_nodes == 20
        click_button(browser, "expand")
        assert any(state(browser)["open"])
        click_button(browser, "collapse")
        assert not any(state(browser)["open"])
        assert "kernels" in browser.run("return document.querySelector('.figures').innerText")
        assert drawn_colors(browser) > 3
    browser.assert_clean()


def drawn_colors(browser: Browser, name: str = "picture") -> int:
    """Return the number of colors in a canvas: a blank one has one."""
    return browser.run(
        "plan.paint(); const c = document.getElementById(arguments[0]); "
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; "
        "const seen = new Set(); "
        "for (let i = 0; i < d.length; i += 4) seen.add((d[i] << 16) | (d[i+1] << 8) | d[i+2]); "
        "return seen.size;",
        name,
    )


WIDTHS = pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])


@pytest.fixture
def sized(browser: Browser, width: int, height: int) -> Iterator[Browser]:
    browser.resize(width, height)
    yield browser
    browser.resize(1280, 800)


def bounds(browser: Browser, name: str) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of an element on the screen."""
    found = browser.run(
        "const r = document.getElementById(arguments[0]).getBoundingClientRect(); "
        "return [r.left, r.top, r.right, r.bottom]",
        name,
    )
    return tuple(found)


@WIDTHS
@pytest.mark.parametrize("make", [model, chain])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_plan_of_400_nodes_opens_where_labels_are_read(
    sized: Browser, tmp_path: Path, make: Callable[[int], FusionPlan], scheme: str
) -> None:
    browser = sized
    plan = make(400)
    with browser.scheme(scheme):
        plan.to_html(tmp_path / "plan.html")
        browser.open(tmp_path / "plan.html")
        browser.assert_clean()
        now = state(browser)
        # Labels are set in 12 pixels.
        assert 12 * now["scale"] >= 9
        left, top, right, bottom = bounds(browser, "picture")
        places = [
            browser.run("return plan.boxAt(arguments[0])", box)
            for box in range(len(plan._picture.boxes))
        ]
        seen = [left <= x <= right and top <= y <= bottom for x, y in places]
        assert 1 <= sum(seen) < len(places)
        # It begins at the first kernel from the left.
        kernels = [i for i, box in enumerate(plan._picture.boxes) if box.kernel is not None]
        assert seen[min(kernels, key=lambda box: places[box][0])]
        # The overview is there, within the picture, and has what is drawn in it.
        frame = now["overview"]
        o_left, o_top, o_right, o_bottom = bounds(browser, "overview")
        assert left <= o_left < o_right <= right
        assert top <= o_top < o_bottom <= bottom
        assert frame[2] < o_right - o_left - 8
        assert drawn_colors(browser, "overview") > 3
        # Nothing of the page is wider than the window.
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth")


@WIDTHS
def test_the_overview_moves_the_picture(sized: Browser, tmp_path: Path) -> None:
    browser = sized
    chain(400).to_html(tmp_path / "plan.html")
    browser.open(tmp_path / "plan.html")
    before = state(browser)
    left, top, right, bottom = bounds(browser, "overview")
    wanted = ((left + right) / 2, (top + bottom) / 2)
    move_to(browser, list(wanted), click=1)
    now = state(browser)
    assert now["scale"] == before["scale"]
    assert now["view"] != before["view"]
    x, y, w, h = now["overview"]
    assert [left + x + w / 2, top + y + h / 2] == pytest.approx(wanted, abs=3)
    # A drag goes on to where it ends.
    common = {"y": wanted[1], "button": "left"}
    for kind, x in (("mousePressed", wanted[0]), ("mouseMoved", left + 8), ("mouseReleased", left)):
        browser.driver.execute_cdp_cmd(
            "Input.dispatchMouseEvent", {"type": kind, "x": x, "clickCount": 1, **common}
        )
    browser.settle()
    assert state(browser)["overview"][0] < 8
    assert state(browser)["node"] is None
    # All that is seen at once needs none; moving away brings it back.
    click_button(browser, "fit")
    assert state(browser)["overview"] is None
    browser.run("plan.zoom(3)")
    browser.settle()
    assert state(browser)["overview"] is not None
    browser.assert_clean()


def test_a_small_plan_is_seen_as_a_whole(browser: Browser, tmp_path: Path) -> None:
    model(20).to_html(tmp_path / "plan.html")
    browser.open(tmp_path / "plan.html")
    begun = state(browser)
    click_button(browser, "fit")
    if begun["overview"] is None:
        assert state(browser)["scale"] == begun["scale"]
    else:
        assert 12 * begun["scale"] >= 9


@WIDTHS
def test_a_window_that_changes_shows_the_beginning_still(sized: Browser, tmp_path: Path) -> None:
    chain(400).to_html(tmp_path / "plan.html")
    sized.open(tmp_path / "plan.html")
    sized.resize(700, 600)
    sized.settle()
    sized.settle()
    now = state(sized)
    assert 12 * now["scale"] >= 9
    sized.open(tmp_path / "plan.html")
    assert state(sized)["view"] == now["view"]


def test_the_figures_stand_on_top(browser: Browser, tmp_path: Path) -> None:
    plan = model(500)
    open_plan(browser, tmp_path, plan)
    text = browser.run("return document.querySelector('.figures').innerText")
    stats = plan.stats
    for before, after in [
        (stats.kernels_before, stats.kernels_after),
        (stats.arrays_before, stats.arrays_after),
    ]:
        assert f"{before:,} \u2192 {after:,}" in text


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


def test_a_drag_that_is_taken_away_is_over(browser: Browser, tmp_path: Path) -> None:
    open_plan(browser, tmp_path, model(20))
    before = browser.run(
        """
        const canvas = document.getElementById("picture");
        const bounds = canvas.getBoundingClientRect();
        canvas.setPointerCapture = () => {};
        const send = (kind, x, y) => {
          const at = { clientX: bounds.left + x, clientY: bounds.top + y, pointerId: 1 };
          canvas.dispatchEvent(new PointerEvent(kind, at));
        };
        send("pointerdown", 5, 5);
        send("pointermove", 50, 50);
        send("pointercancel", 50, 50);
        const before = plan.nodeAt(0);
        send("pointermove", 300, 300);
        return before;
        """
    )
    assert browser.run("return plan.nodeAt(0)") == before


def test_all_of_a_tall_picture_fits(browser: Browser, tmp_path: Path) -> None:
    # The leaves of a tree stand in one column.
    leaves = nodes = pt.vectors(4096)
    while len(nodes) > 1:
        nodes = [reverse(a * b) for a, b in zip(nodes[::2], nodes[1::2], strict=True)]
    plan = pytensor_fuse.plan_fusion(FunctionGraph(leaves, nodes, clone=False))
    open_plan(browser, tmp_path, plan)
    for name in ("fit", "expand"):
        click_button(browser, name)
        places = browser.run("return plan.places()")
        bottom = max(map(sum, zip(places["top"], places["height"], strict=True)))
        n_boxes = len(plan._picture.boxes)
        lowest = max(range(n_boxes), key=lambda box: places["top"][box] + places["height"][box])
        scale = state(browser)["scale"]
        _, y = browser.run("return plan.boxAt(arguments[0])", lowest)
        assert bottom * scale < 800
        assert 0 < y < 800
        browser.run("plan.zoom(0.5)")
        assert state(browser)["scale"] <= scale
    browser.assert_clean()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_legend_has_the_colors_of_the_picture(
    browser: Browser, tmp_path: Path, scheme: str
) -> None:
    with browser.scheme(scheme):
        open_plan(browser, tmp_path, model(20))
        colors = browser.run(
            "return [...document.querySelectorAll('#legend i')]"
            ".map((each) => getComputedStyle(each).backgroundColor)"
        )
    for color in colors:
        brightness = sum(int(part) for part in color.strip("rgb()").split(","))
        assert (brightness > 380) == (scheme == "light"), color


def test_the_wheel_zooms_where_the_pointer_is(browser: Browser, tmp_path: Path) -> None:
    open_plan(browser, tmp_path, model(20))
    place = browser.run("return plan.nodeAt(0)")
    scale = state(browser)["scale"]
    browser.driver.execute_cdp_cmd(
        "Input.dispatchMouseEvent",
        {"type": "mouseWheel", "x": place[0], "y": place[1], "deltaX": 0, "deltaY": -200},
    )
    browser.settle()
    assert state(browser)["scale"] > scale
    assert browser.run("return plan.nodeAt(0)") == pytest.approx(place, abs=1)


def test_any_text_is_text(browser: Browser, tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=\"document.title='bad'\">'&amp;\u2028"
    x = pt.vector(evil)
    y = pt.exp(x)
    y.name = evil
    y.tag.trace = [[(evil, 1, "f", evil)]]
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [reverse(y)], clone=False))
    open_plan(browser, tmp_path, plan)
    for node in range(len(plan._picture.nodes)):
        move_to(browser, browser.run("return plan.nodeAt(arguments[0])", node), click=1)
    search(browser, "img")
    assert evil.replace("\u2028", "") in shown(browser, "panel").replace("\u2028", "").replace(
        "\n", ""
    )
    assert browser.run("return document.images.length") == 0
    assert "bad" not in browser.run("return document.title")
    browser.assert_clean()


def test_a_notebook_shows_it_in_a_frame(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "notebook.html"
    text = model(20)._repr_html_()
    path.write_text(f"<!DOCTYPE html><title>notebook</title>{text}", encoding="utf-8")
    browser.open(path)
    browser.driver.switch_to.frame(0)
    try:
        scale = state(browser)["scale"]
        reached = browser.run(
            "try { return String(parent.document.title); } catch (error) { return error.name; }"
        )
        colors = drawn_colors(browser)
    finally:
        browser.driver.switch_to.default_content()
    assert scale > 0.1
    assert colors > 3
    assert reached == "SecurityError"
    assert browser.requests() == []


def test_an_svg_is_a_picture(browser: Browser, tmp_path: Path) -> None:
    plan = model(500)
    path = tmp_path / "plan.svg"
    path.write_text(plan.to_svg(), encoding="utf-8")
    browser.open(path)
    browser.assert_clean()
    n_boxes = browser.run("return document.querySelectorAll('g > rect:first-of-type').length")
    assert n_boxes == len(plan._picture.boxes)
