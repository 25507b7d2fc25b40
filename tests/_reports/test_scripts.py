"""Scripts of pages: modules put together mean what they mean as modules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from pytensor_fuse._reports import scripts
from pytensor_fuse._reports.scripts import script
from support.web.browser import Browser
from support.web.page_files import write_page

PAGES = ["pytensor_fuse._pictures plan/main.js"]


@pytest.fixture(autouse=True)
def nothing_is_known() -> Iterator[None]:
    script.cache_clear()
    yield
    script.cache_clear()


def put_together(modules: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(scripts, "asset", lambda package, name: modules[name])
    return script("package", "folder/main.js")


def test_each_module_stands_once_after_those_that_it_imports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = put_together(
        {
            "folder/main.js": 'import "./b.js";\nimport { a, c }\n  from "./a.js";\nmain(a);\n',
            "folder/a.js": "export let a = 1;\nexport function c() {}\n",
            "folder/b.js": 'import { a, } from "./a.js";\nexport const b = a;\n',
        },
        monkeypatch,
    )
    assert text == (
        '(() => {\n"use strict";\nlet a = 1;\nfunction c() {}\nconst b = a;\nmain(a);\n})();'
    )


@pytest.mark.parametrize(
    "line",
    [
        'import { a as b } from "./a.js";',
        'import * as a from "./a.js";',
        'import a from "./a.js";',
        'import { a } from "https://example.com/a.js";',
        "export default 1;",
        "export { a };",
    ],
)
def test_what_would_not_mean_the_same_is_refused(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=rf"folder/main\.js.*{re.escape(line)}"):
        put_together({"folder/main.js": f"{line}\n", "folder/a.js": ""}, monkeypatch)


def test_circles_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"folder/main.js": 'import "./a.js";\n', "folder/a.js": 'import "./main.js";\n'}
    with pytest.raises(ValueError, match=r"main\.js -> folder/a\.js -> folder/main\.js"):
        put_together(modules, monkeypatch)


@pytest.mark.parametrize("page", PAGES)
def test_names_at_the_top_differ(page: str) -> None:
    names = [name for text in modules_of(page).values() for name in names_at_the_top(text)]
    assert len(names) > 10
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("page", PAGES)
def test_what_is_exported_is_imported(page: str) -> None:
    modules = modules_of(page)
    exported = {
        name
        for text in modules.values()
        for line in re.findall(r"^export .*", text, re.MULTILINE)
        for name in names_at_the_top(line)
    }
    imported = {
        name
        for text in modules.values()
        for group in re.findall(r"^import \{([^}]*)\}", text, re.MULTILINE)
        for name in re.findall(r"\w+", group)
    }
    assert exported == imported


@pytest.mark.parametrize("page", PAGES)
def test_every_module_is_in_the_page(page: str) -> None:
    text = script(*page.split())
    for name, module in modules_of(page).items():
        assert module.splitlines()[0] in text, name


def modules_of(page: str) -> dict[str, str]:
    """Return the texts of the modules of a page by name."""
    package, entry = page.split()
    folder = files(package).joinpath("assets", *Path(entry).parts[:-1])
    return {module.name: module.read_text(encoding="utf-8") for module in folder.iterdir()}


def names_at_the_top(text: str) -> list[str]:
    """Return what the statements that are not indented declare."""
    names: list[str] = []
    for match in re.finditer(
        r"^(?:export )?(?:(?:async )?function (\w+)|class (\w+)|(?:const|let) ([^=;]+))",
        text,
        re.MULTILINE,
    ):
        names += re.findall(r"\w+", next(group for group in match.groups() if group))
    return names


def test_a_module_sees_what_another_changes(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = put_together(
        {
            "folder/main.js": 'import { add, n } from "./a.js";\nadd();\nglobalThis.seen = n;\n',
            "folder/a.js": "export let n = 1;\nexport function add() {\n  n += 1;\n}\n",
        },
        monkeypatch,
    )
    browser.open(write_page(tmp_path, "", script=text))
    assert browser.run("return [seen, typeof n, typeof add]") == [2, "undefined", "undefined"]
    browser.assert_clean()
