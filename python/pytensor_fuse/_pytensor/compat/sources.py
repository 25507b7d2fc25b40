"""Whether the sources of functions are those that were reviewed.

A function is recognized by the normal form of its source (`normal_form`); `known_sources` has the
digests of those that the package supports. If the whole file is that of a reviewed release
(`known_files`), nothing is parsed.
"""

from __future__ import annotations

import ast
import sys
import warnings
from functools import cached_property
from importlib.util import decode_source, find_spec
from typing import TYPE_CHECKING, Any, Final

from pytensor_fuse._pytensor.compat.known_files import FILES, PARTLY_KNOWN
from pytensor_fuse._pytensor.compat.known_sources import SOURCES
from pytensor_fuse._pytensor.compat.normal_form import digest, digest_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType


class NoSourceError(Exception):
    """A function has no source; the message names its module, or the package if none has one."""


class _File:
    """The file of a module, as its loader returns it.

    Attributes
    ----------
    path
        The file name in the code of its functions.
    digest
        Digest of its bytes.
    """

    def __init__(self, spec: ModuleSpec) -> None:
        self.spec = spec
        self.path = spec.origin or ""
        self.digest = digest_of(self._data())
        self._functions: dict[tuple[str, int], str | None] = {}

    def _data(self) -> bytes:
        loader: Any = self.spec.loader
        if self.path.endswith(".pyc"):
            # Sources are rarely missing for one module alone, so the whole package gives one reason
            # once.
            package = self.spec.name.partition(".")[0]
            raise NoSourceError(
                f"{package} is installed without its sources, which identify its functions"
            )
        if not self.path.endswith(".py") or not hasattr(loader, "get_data"):
            raise NoSourceError(f"there is no source of {self.spec.name}")
        data: bytes = loader.get_data(self.path)
        return data

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the file, cached because unknown files are searched more than once."""
        try:
            return decode_source(self._data()).split("\n")
        except (SyntaxError, UnicodeDecodeError) as error:
            raise NoSourceError(f"the source of {self.spec.name} cannot be read: {error}") from None

    def function(self, code: CodeType) -> str | None:
        """Return the digest of the function that a code object belongs to; None if it has none."""
        key = code.co_name, code.co_firstlineno
        if key not in self._functions:
            found = function_at(self.lines, code.co_firstlineno)
            self._functions[key] = (
                digest(found) if found is not None and found.name == code.co_name else None
            )
        return self._functions[key]


# By module, as imported last.
_files: Final[dict[str, _File]] = {}


def _file_of(spec: ModuleSpec) -> _File:
    found = _files.get(spec.name)
    if found is None or found.spec is not spec:
        found = _files[spec.name] = _File(spec)
    return found


def other_function(code: CodeType, module: str, path: str) -> str | None:
    """Say what a function is instead of the known one; None if it is the known one.

    Parameters
    ----------
    code
        The code that the function runs.
    module, path
        The place of the known function: its module, and its qualified name there.

    Raises
    ------
    NoSourceError
        If there is no source of the module.
    KeyError
        If no function is known by this name.
    """
    known = SOURCES[module][path]
    spec: Any = sys.modules[module].__spec__
    file = _file_of(spec)
    if code.co_filename != file.path or code.co_qualname != path:
        return f"another ({code.co_qualname} of {code.co_filename})"
    if file.digest in FILES.get(module, "").split():
        return None
    others = PARTLY_KNOWN.get(module, {}).get(file.digest)
    if others is not None:
        return "another version (also known)" if path in others.split() else None
    found = file.function(code)
    if found is None:
        return f"no longer what {file.path} contains"
    return None if found in known.split() else f"another ({found})"


def other_text(module: str, name: str = "") -> str | None:
    """Say what a module, or a class in it, is instead of the known one; None if it is known.

    The packages that contain the module are imported, but the module is not.

    Parameters
    ----------
    module
        Name of the module.
    name
        Name of the class; empty for the whole module.

    Raises
    ------
    NoSourceError
        If the module has no source.
    KeyError
        If no source is known under this name.
    """
    known = SOURCES[module][name]
    spec = find_spec(module)
    if spec is None:
        raise NoSourceError(f"there is no {module}")
    file = _file_of(spec)
    if file.digest in FILES.get(module, "").split():
        return None
    text: ast.AST = _parsed("\n".join(file.lines))
    if name:
        classes = [
            one for one in ast.walk(text) if isinstance(one, ast.ClassDef) and one.name == name
        ]
        if len(classes) != 1:
            return f"not the only one in {file.path}"
        text = classes[0]
    found = digest(text)
    return None if found in known.split() else f"another ({found})"


def function_at(lines: Sequence[str], first: int) -> ast.FunctionDef | None:
    """Return the function that starts at a line, its decorators included; None if there is none.

    Parameters
    ----------
    lines
        Lines of the file.
    first
        Number of the first line, from 1.

    Notes
    -----
    Only the lines of the function are parsed. The function ends before a line that is indented no
    more than its first one. Such a line may lie within the function, in a string or before a
    closing bracket; then the lines above it do not parse, and the next candidate is tried: O(lines
    of the function) for each.
    """
    if not 0 < first <= len(lines):
        return None
    indentation = _indentation(lines[first - 1])
    head = ["if True:"] if indentation else []
    is_defined = False
    for end in range(first, len(lines) + 1):
        is_defined |= lines[end - 1].lstrip().startswith("def ")
        if not is_defined or (end < len(lines) and not _is_outside(lines[end], indentation)):
            continue
        try:
            tree = _parsed("\n".join([*head, *lines[first - 1 : end], ""]))
        except SyntaxError:
            continue
        only: Any = tree.body[0] if tree.body else None
        found = only.body[0] if head else only
        return found if isinstance(found, ast.FunctionDef) else None
    return None


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_outside(line: str, indentation: int) -> bool:
    words = line.strip()
    # Comments may have any indentation.
    return bool(words) and not words.startswith("#") and _indentation(line) <= indentation


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        # Newer versions of Python warn about the code when it is compiled; parsing need not repeat
        # that.
        warnings.simplefilter("ignore")
        return ast.parse(text)
