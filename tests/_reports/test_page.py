"""Pages as people open them, and that the browser sees what it is there to see."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.web.browser import Browser
from support.web.page_files import write_page


def test_a_page_that_does_nothing_is_clean(browser: Browser, tmp_path: Path) -> None:
    browser.open(write_page(tmp_path, "<p id=text>hello</p>"))
    assert browser.run("return document.getElementById('text').textContent") == "hello"
    browser.assert_clean()


@pytest.mark.parametrize("script", ["throw new Error('oops')", "console.error('oops')"])
def test_errors_of_a_script_are_seen(browser: Browser, tmp_path: Path, script: str) -> None:
    browser.open(write_page(tmp_path, "", script=script))
    (error,) = browser.errors()
    assert "oops" in error
    browser.open(write_page(tmp_path, ""))
    browser.assert_clean()


def test_requests_are_seen(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text('<img src="http://127.0.0.1:9/picture.png">', encoding="utf-8")
    browser.open(path)
    assert browser.requests() == ["http://127.0.0.1:9/picture.png"]


def test_a_page_forbids_itself_requests(browser: Browser, tmp_path: Path) -> None:
    browser.open(write_page(tmp_path, '<img src="http://127.0.0.1:9/picture.png">'))
    assert browser.requests() == []
    assert any("Content Security Policy" in error for error in browser.errors())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_follow_the_colors_that_the_user_prefers(
    browser: Browser, tmp_path: Path, scheme: str
) -> None:
    with browser.scheme(scheme):
        browser.open(write_page(tmp_path, ""))
        ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in ground.strip("rgb()").split(","))
    assert (brightness > 380) == (scheme == "light")
