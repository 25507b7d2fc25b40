"""The palette: whoever shows a color takes it from there, by a name that is in it."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

import pytensor_fuse
from pytensor_fuse._reports.palette import COLORS, custom_properties, kernel_colors
from support.web.browser import Browser
from support.web.page_files import write_page

ROOT = Path(str(files(pytensor_fuse)))
SOURCES = [
    path
    for path in sorted(ROOT.rglob("*"))
    if path.suffix in (".py", ".js", ".css") and path.name != "palette.py"
]


def test_no_other_file_defines_a_color() -> None:
    colors = re.compile(r"#(?:[0-9a-fA-F]{3,4}){1,2}\b|\b(?:rgba?|hsla?)\((?![$]|var)")
    found = [
        (path.name, match[0])
        for path in SOURCES
        for match in colors.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_names_that_pages_use_are_defined_and_all_are_used() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    defined = set(re.findall(r"--([\w-]+):", custom_properties()))
    used = {name for text in texts.values() for name in re.findall(r"var\(--([\w-]+)", text)}
    assert used <= defined
    script = next(text for path, text in texts.items() if path.name == "colors.js")
    assert defined <= used | set(re.findall(r'"([\w-]+)"', script))


def test_the_colors_of_kernels_differ() -> None:
    colors = [kernel_colors(kernel) for kernel in range(50)]
    assert colors[0] == ("#eaf4fa", "#c5dff1", "#38749f")
    assert len({color.border for color in colors}) == 50


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_has_the_colors_by_name(browser: Browser, tmp_path: Path, scheme: str) -> None:
    body = '<i id="kernel" style="color: hsl(var(--kernel-hue) var(--kernel-border))"></i>'
    with browser.scheme(scheme):
        browser.open(write_page(tmp_path, body))
        text, kernel = browser.run(
            "return [document.body, document.getElementById('kernel')]"
            ".map((each) => getComputedStyle(each).color)"
        )
    wanted = getattr(COLORS["text"], scheme)
    assert text == f"rgb({', '.join(str(n) for n in bytes.fromhex(wanted[1:]))})"
    if scheme == "light":
        numbers = bytes.fromhex(kernel_colors(0).border[1:])
        assert kernel == f"rgb({', '.join(str(n) for n in numbers)})"
    browser.assert_clean()
