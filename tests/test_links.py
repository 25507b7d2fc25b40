"""Links between the pages that are kept here lead to what is there."""

import sys
from pathlib import Path
from shutil import copy
from subprocess import run

import pytest

from support.web.pages import ROOT, anchors_of, links_of, name_of, pages

PAGES = pages()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for link in links_of(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors_of(target), link


def test_there_are_links():
    by_name = {name_of(page): links_of(page) for page in PAGES}
    assert "docs/plans.md" in by_name["README.md"]
    assert sum(map(len, by_name.values())) > 60
    assert any("#" in link for link in by_name["docs/reference/safety.md"])


def test_a_link_that_leads_nowhere_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One: *two* `three`\n\n[a](gone.md) [b](#one-two-three) `[c](code)`\n")
    assert links_of(page) == ["gone.md", "#one-two-three"]
    assert anchors_of(page) == {"one-two-three"}


def test_what_an_index_shows_has_no_relative_links(tmp_path):
    readme = Path(copy(ROOT / "README.md", tmp_path))
    before = readme.read_text(encoding="utf-8")
    run([sys.executable, ROOT / "scripts" / "absolute-links", readme], check=True)
    assert links_of(readme) == []
    after = readme.read_text(encoding="utf-8")
    assert after.count("](https://raw.githubusercontent.com/") == before.count("![") == 1
    assert after.count("](https:") == before.count("](")
