"""Plans in a browser: how they are opened, and what people do to them."""

from __future__ import annotations

from pathlib import Path

import pytensor.tensor as pt
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
