"""What a compilation depends on beside its graph, as values that can be compared and digested.

What is registered with PyTensor is told apart by identity within a process. Other processes are
told names, and the versions of the packages that have these.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from functools import cache, partial
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import Any, Final

from pytensor.graph.basic import Constant
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import Rewriter

from pytensor_fuse import _core
from pytensor_fuse._cache.foreign import KNOWN_PACKAGES
from pytensor_fuse._identity.terms import constant_term, term
from pytensor_fuse._pytensor.surroundings import NotToldError, Watch, registered
from pytensor_fuse._startup.features import on_now

# Modules of Python itself that classes and functions of the others are of.
_STANDARD: Final = ("builtins", "abc", "enum", "functools", "operator", "types")

# What patterns of rewriters are made of.
_PATTERNS: Final = ("etuples", "unification")

# Packages whose versions say what is written in their files.
_VERSIONED: Final = (*KNOWN_PACKAGES, "numpy", "scipy", "numba", "llvmlite", *_PATTERNS, *_STANDARD)
_OURS: Final = "pytensor_fuse"

# Features under which the same graphs come out.
_SAME_GRAPHS: Final = ("accelerators", "cache", "other_data")

# How deep rewriters and their patterns, which may hold functions of others, are looked into.
_DEPTH: Final = 12

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

# The latest ones that were asked for, and what tells whether they are the present ones.
_latest: list[tuple[Watch, Registrations]] = []


def registrations() -> Registrations:
    """Return what is registered now; some 0.3 ms if nothing has changed, 4 ms otherwise."""
    for watch, latest in _latest:
        if watch.is_unchanged():
            return latest
    # Before it is asked what there is: what another thread registers meanwhile is seen next time.
    watch = Watch()
    found = _registrations()
    _latest[:] = [(watch, found)]
    return found


def _registrations() -> Registrations:
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
    told: dict[int, str] = {}
    for item in items:
        try:
            text = told.get(id(item)) or told.setdefault(id(item), _told(item, _DEPTH))
        except NotToldError as error:
            return None, f"{item}: {error}"
        made.update(f"{len(text)}:{text}".encode())
    return made.digest(), ""


def _told(item: Any, depth: int) -> str:
    """Return what tells something that is registered from others, in every process.

    Functions and classes of known packages are told by names, for the versions of these are told as
    well; rewriters by their class and all that they hold, patterns for one.

    Raises
    ------
    NotToldError
        If part of it is another package's, whose text may have changed since it was imported.
    """
    if item is None or isinstance(item, str | int | float | bool):
        return repr(item)
    if isinstance(item, Sequence):
        return f"({','.join(_told(part, depth - 1) for part in item)})"
    if isinstance(item, set | frozenset):
        return f"<{','.join(sorted(_told(part, depth - 1) for part in item))}>"
    if isinstance(item, UnionType):
        return _told(item.__args__, depth - 1)
    if isinstance(item, partial):
        return f"partial {_told((item.func, item.args, item.keywords), depth - 1)}"
    if isinstance(item, Op | Constant):
        digest = (term(item) if isinstance(item, Op) else constant_term(item)).digest
        if digest is None:
            raise NotToldError(f"{item} is known to this process alone")
        return digest.hex()
    if isinstance(item, dict):
        pairs = (f"{key!s}:{_told(value, depth - 1)}" for key, value in item.items())
        return f"{{{','.join(sorted(pairs))}}}"
    # A bound method's own module is that of its function.
    home = item if hasattr(item, "__qualname__") else type(item)
    module = (getattr(home, "__module__", None) or "").split(".")
    if module[0] not in _VERSIONED:
        raise NotToldError(f"{home!r} is of {'.'.join(module)}")
    name = f"{'.'.join(module)}:{getattr(home, '__qualname__', '')}"
    if home is item:
        return name
    if module[0] not in (*KNOWN_PACKAGES, *_PATTERNS):
        raise NotToldError(f"nothing tells one {name} from another")
    if depth and (isinstance(item, Rewriter) or module[-1] == "unify"):
        return f"{name} {_told(_attributes(item), depth - 1)}"
    return name


def _attributes(item: Any) -> dict[str, Any]:
    if hasattr(item, "__dict__"):
        return dict(vars(item))
    return {name: getattr(item, name, None) for name in type(item).__slots__}


@cache
def versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of all that decides about a rewritten graph and its parts."""
    told = [
        ("python", f"{platform.python_implementation()} {sys.version}"),
        ("machine", f"{platform.machine()} {sys.byteorder}"),
        (_OURS, f"{_core.__version__} {_own_files()}"),
    ]
    for name in ("pytensor", "pymc", "numpy", "scipy", "numba", "llvmlite"):
        try:
            told.append((name, version_of(name)))
        except PackageNotFoundError:
            told.append((name, "none"))
    return tuple(told)


def version_of(name: str) -> str:
    """Return the version of a package, and what tells its files if somebody works on them.

    Raises
    ------
    PackageNotFoundError
        If it is not installed.
    """
    found = distribution(name)
    if name not in KNOWN_PACKAGES or "editable" not in (found.read_text("direct_url.json") or ""):
        return found.version
    # Installed from a folder of sources, whose version stays while they change.
    home = find_spec(name)
    places = (home.submodule_search_locations if home is not None else None) or ()
    return f"{found.version} {' '.join(_files(Path(place)) for place in places)}"


def _own_files() -> str:
    """Return what tells the files of this package from others of the same version."""
    return _files(Path(__file__).parents[1])


def _files(folder: Path) -> str:
    made = blake2b(digest_size=8)
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".py", ".so", ".pyd"):
            found = file.stat()
            made.update(f"{file.relative_to(folder)} {found.st_mtime_ns} {found.st_size};".encode())
    return made.hexdigest()


def features() -> tuple[str, ...]:
    """Return the features of this package that are on, but for those that change no graph."""
    return tuple(name for name in on_now() if name.partition(":")[0] not in _SAME_GRAPHS)
