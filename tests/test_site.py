"""The site that `make docs` builds: pages fit a phone and a desk, and ask no network."""

import re

import pytest

from support.web.pages import DOCS

SITE = DOCS / "_build" / "html"
PAGES = sorted(SITE.rglob("*.html"))

pytestmark = pytest.mark.skipif(not PAGES, reason="make docs has not built it")


def test_pages_fit_and_log_nothing(browser):
    wide, logged = {}, {}
    try:
        for page in PAGES:
            browser.open(page)
            name = page.relative_to(SITE).as_posix()
            for width in (390, 1280):
                browser.resize(width, 900)
                if (found := browser.run("return document.documentElement.scrollWidth")) > width:
                    wide[name, width] = found
            from_elsewhere = [url for url in browser.requests() if not url.startswith("file:")]
            if entries := browser.errors() + from_elsewhere:
                logged[name] = entries
    finally:
        browser.resize(1280, 800)
    assert wide == {}
    assert logged == {}


@pytest.mark.parametrize("page", ["index", "how_it_works", "api/questions"])
def test_pages_follow_light_and_dark(browser, page):
    grounds = []
    for scheme in ("light", "dark"):
        with browser.scheme(scheme):
            browser.open(SITE / f"{page}.html")
            grounds.append(browser.run("return getComputedStyle(document.body).backgroundColor"))
    light, dark = (sum(map(int, re.findall(r"\d+", each)[:3])) for each in grounds)
    assert dark < 100 < 700 < light


def test_the_picture_follows_the_choice_of_the_reader(browser):
    """An image would know what the browser prefers, not what was chosen on the page."""
    browser.open(SITE / "how_it_works.html")
    ink = []
    for theme in ("light", "dark"):
        browser.run(f"document.body.dataset.theme = '{theme}'")
        ink.append(
            browser.run("return getComputedStyle(document.querySelector('.data-way text')).fill")
        )
    light, dark = (sum(map(int, each[4:-1].split(","))) for each in ink)
    assert light < 200 < 500 < dark


def test_each_public_name_is_in_the_reference():
    import pytensor_fuse

    reference = "".join(page.read_text(encoding="utf-8") for page in (SITE / "api").glob("*.html"))
    modules = {"cache", "exceptions", "graph", "linalg", "native", "reports", "__version__"}
    missing = {
        name
        for name in pytensor_fuse.__all__
        if name not in modules and f'id="pytensor_fuse.{name}"' not in reference
    }
    assert missing == set()
