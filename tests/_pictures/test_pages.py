"""Pictures of plans as people open them, in a headless Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph

import pytensor_fuse
from pytensor_fuse.reports import FusionPlan
from support.graphs import reverse
from support.web.browser import Browser
from support.web.plans import chain, click_button, model, move_to, open_plan, search, shown, state


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
