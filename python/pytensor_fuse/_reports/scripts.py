"""Scripts of pages: a bundler of JavaScript modules into the single script of a page.

The sources are standard modules, so that linters and editors understand them. In a page they share
one scope, each after its imports: import statements and ``export`` keywords are removed. For the
meaning to be the same, top-level names of a page's modules must differ, imports may not rename,
and the modules may not import each other in a cycle.
"""

from __future__ import annotations

import functools
import re
from posixpath import dirname, join, normpath

from pytensor_fuse._reports.page import asset

_IMPORT = re.compile(
    r'^import (?:\{\s*\w+(?:,\s*\w+)*,?\s*\}\s+from )?"(\./[\w./-]+\.js)";\n', re.MULTILINE
)
_EXPORT = re.compile(r"^export (?=(?:async )?function\b|const\b|let\b|class\b)", re.MULTILINE)
_REST = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


@functools.cache
def script(package: str, entry: str) -> str:
    """Return a module among a subpackage's assets, bundled with all its imports.

    Raises
    ------
    ValueError
        If modules import each other in a cycle, or an import or export is of another form than
        ``import { name } from "./module.js";`` and ``export function``, ``const``, ``let`` or
        ``class``.
    """
    parts: dict[str, str] = {}
    _add(package, entry, (), parts)
    return f'(() => {{\n"use strict";\n{"".join(parts.values())}}})();'


def _add(package: str, name: str, importers: tuple[str, ...], parts: dict[str, str]) -> None:
    if name in importers:
        raise ValueError(f"modules import each other: {' -> '.join((*importers, name))}")
    if name in parts:
        return
    text = asset(package, name)
    for imported in _IMPORT.findall(text):
        _add(package, normpath(join(dirname(name), imported)), (*importers, name), parts)
    text = _EXPORT.sub("", _IMPORT.sub("", text))
    rest = _REST.search(text)
    if rest is not None:
        raise ValueError(f"{name}: cannot be put into one script: {rest[0]}")
    parts[name] = text
