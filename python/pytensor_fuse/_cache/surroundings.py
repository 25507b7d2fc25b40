"""What a compilation depends on beside its graph, as values that can be compared and digested.

What is registered with PyTensor is told apart by identity within a process. Other processes are
told names, and the files in which what has these names is written.
"""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from pytensor.graph.rewriting.basic import NodeRewriter

from pytensor_fuse import _core
from pytensor_fuse._pytensor.surroundings import registered
from pytensor_fuse._startup.features import on_now

# Packages whose versions say what is written in their files.
_VERSIONED: Final = ("pytensor", "numpy", "scipy", "numba", "llvmlite", "builtins")
_OURS: Final = "pytensor_fuse"

# So many sets of registrations are remembered at most.
_MOST: Final = 32


class Registrations:
    """All that was registered with PyTensor at some time.

    Two are the same object if they are of the same registrations.

    Attributes
    ----------
    items
        What is registered. It stays alive, so that no other object gets its address.
    digest
        What tells them apart in other processes; None if something is known to this one alone.
    culprit
        What that is.
    """

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.digest, self.culprit = _digest(items)


_known: list[Registrations] = []


def registrations() -> Registrations:
    """Return what is registered now; some 0.5 ms if nothing has changed."""
    items = registered()
    for known in reversed(_known):
        if _same(known.items, items):
            return known
    made = Registrations(items)
    _known.append(made)
    del _known[:-_MOST]
    return made


def _same(a: list[Any], b: list[Any]) -> bool:
    # Lists compare items by identity first; nothing that is registered is equal to another thing.
    try:
        return len(a) == len(b) and a == b
    except Exception:  # Somebody's comparison may fail.
        return False


def _digest(items: list[Any]) -> tuple[bytes | None, str]:
    made = blake2b(digest_size=16)
    for item in items:
        text = _told(item)
        if text is None:
            return None, f"{item!r} of {type(item).__module__}"
        made.update(f"{len(text)}:{text}".encode())
    return made.digest(), ""


def _told(item: Any) -> str | None:
    """Return what tells something that is registered from others; None if nothing does."""
    if isinstance(item, str | int | float | bool):
        return repr(item)
    parts = [item, type(item)]
    if isinstance(item, NodeRewriter):
        parts.append(getattr(item, "fn", None))
    told = [str(getattr(item, "name", None) or getattr(item, "__qualname__", ""))]
    for part in parts:
        if part is None or not hasattr(part, "__module__"):
            continue
        source = source_of(part)
        if source is None:
            return None
        told.append(f"{source} {getattr(part, '__qualname__', '')}")
        if _closes_over(part) and not source.startswith("version"):
            return None
    return " ".join(told)


def _closes_over(part: Any) -> bool:
    return bool(getattr(part, "__closure__", None))


def source_of(part: Any) -> str | None:
    """Return what tells the source text of a class or function from a changed one.

    Returns
    -------
    str or None
        None for what no file holds.
    """
    module = getattr(part, "__module__", None)
    return None if module is None else _source_of_module(module)


def _source_of_module(name: str) -> str | None:
    package = name.split(".")[0]
    if package in _VERSIONED or package == _OURS:
        return f"version {name}"
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or name in ("__main__", "__mp_main__"):
        return None
    try:
        found = os.stat(file)
    except OSError:
        return None
    return f"{name} {file} {found.st_mtime_ns} {found.st_size}"


@cache
def versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of all that decides about a rewritten graph and its parts."""
    told = [
        ("python", f"{platform.python_implementation()} {sys.version}"),
        ("machine", f"{platform.machine()} {sys.byteorder}"),
        (_OURS, f"{_core.__version__} {_own_files()}"),
    ]
    for name in ("pytensor", "numpy", "scipy", "numba", "llvmlite"):
        try:
            told.append((name, version(name)))
        except PackageNotFoundError:
            told.append((name, "none"))
    return tuple(told)


def _own_files() -> str:
    """Return what tells the files of this package from others of the same version."""
    made = blake2b(digest_size=8)
    folder = Path(__file__).parents[1]
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".py", ".so", ".pyd"):
            found = file.stat()
            made.update(f"{file.relative_to(folder)} {found.st_mtime_ns} {found.st_size};".encode())
    return made.hexdigest()


def features() -> tuple[str, ...]:
    """Return the features of this package that are on."""
    return on_now()
