"""The pages of documentation: their list, headings and links."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"

_CODE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.DOTALL | re.MULTILINE)


def pages():
    """Return all Markdown pages of the repository, in a fixed order."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("rust/*/*.md")]
    folders = (DOCS, DOCS / "reference", DOCS / "upstream")
    return sorted([*found, *(page for folder in folders for page in folder.glob("*.md"))])


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def text_of(page):
    return page.read_text(encoding="utf-8")


def without_code(text):
    return _CODE.sub("", text)


def anchors_of(page):
    """Return the anchors of a page's headings, as GitHub and the site derive them."""
    text = text_of(page)
    included = re.findall(r"^```\{include\} (\S+)", text, re.MULTILINE)
    found = set()
    for heading in re.findall(r"^#+ (.*)$", without_code(text), re.MULTILINE):
        plain = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found.union(*(anchors_of(page.parent / each) for each in included))


def links_of(page):
    """Return the targets of a page's links and pictures, except for targets that are no files."""
    text = re.sub(r"`[^`\n]*`", "", without_code(text_of(page)))
    found = re.findall(r"\]\(([^()\s]+)\)", text)
    return [each for each in found if not re.match(r"[a-z]+:", each)]
