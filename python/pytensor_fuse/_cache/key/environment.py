"""The environment of a compilation, as values that can be compared and digested.

Within a process, registrations with PyTensor are compared by identity. Across processes, they are
compared by names, together with the versions of their packages.
"""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytensor_fuse import _core
from pytensor_fuse._cache.key.cacheability import KNOWN_PACKAGES
from pytensor_fuse._cache.key.registration_digest import registration_digest
from pytensor_fuse._pytensor.rewriting.environment import Watch, registered
from pytensor_fuse._startup.features import on_now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import Distribution

_OURS: Final = "pytensor_fuse"

# Features that do not affect the rewritten graph.
_SAME_GRAPHS: Final = ("accelerators", "cache", "other_data")

# The files that determine a package's behavior: PyTensor has C code beside its ops.
_DECIDING: Final = (".py", ".so", ".pyd", ".c", ".h", ".pyx")

# The largest number of remembered sets of registrations.
_MOST: Final = 32


class Registrations:
    """A snapshot of all registrations with PyTensor.

    Equal snapshots are the same object.

    Attributes
    ----------
    items
        The registered objects. They stay alive, so that no other object gets their addresses.
    digest
        The digest in every process; None if something is known to this one alone.
    culprit
        The name of that object.
    """

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.digest, self.culprit = registration_digest(items)


_known: list[Registrations] = []

# The latest snapshot, and a watch that tells whether it is current.
_latest: list[tuple[Watch, Registrations]] = []


def registrations() -> Registrations:
    """Return the current registrations; some 0.3 ms if nothing has changed, 4 ms otherwise."""
    for watch, latest in _latest:
        if watch.is_unchanged():
            return latest
    # Before reading the registrations, so that a concurrent registration is noticed next time.
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
    # Lists compare items by identity first; no two different registered objects are equal.
    try:
        return len(a) == len(b) and a == b
    except Exception:  # A third-party comparison may fail.
        return False


@cache
def versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of all packages that affect a rewritten graph and its parts."""
    told = [
        ("python", f"{platform.python_implementation()} {sys.version}"),
        ("machine", f"{platform.machine()} {sys.byteorder}"),
        (_OURS, f"{_core.__version__} {_own_files()}"),
    ]
    names = ("pytensor", "pymc", "numpy", "scipy", "numba", "llvmlite")
    return (*told, *((name, version_of(name)) for name in names))


def version_of(name: str) -> str:
    """Return the version of a package, with a digest of its files in an editable installation.

    The version is ``"none"`` if the package is not installed.
    """
    # Imported late, because it loads archives and much else.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution(name)
    except PackageNotFoundError:
        return "none"
    if name not in KNOWN_PACKAGES or "editable" not in (found.read_text("direct_url.json") or ""):
        return _version(found)
    # Installed from a folder of sources, which change while the version does not.
    home = find_spec(name)
    places = (home.submodule_search_locations if home is not None else None) or ()
    return f"{_version(found)} {' '.join(_files(Path(place)) for place in places)}"


def _own_files() -> str:
    """Return a digest of the files of this package, which differs within a version."""
    return _files(Path(__file__).parents[2])


def _version(found: Distribution) -> str:
    """Return the version in a package's metadata, without parsing the rest, which is slow."""
    for line in (found.read_text("METADATA") or "").splitlines():
        name, _, value = line.partition(":")
        if name == "Version":
            return value.strip()
    return found.version


def _files(folder: Path) -> str:
    made = blake2b(digest_size=8)
    for path, found in sorted(_scanned(str(folder), "")):
        made.update(f"{path} {found.st_mtime_ns} {found.st_size};".encode())
    return made.hexdigest()


def _scanned(folder: str, within: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == "__pycache__":
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _scanned(entry.path, f"{within}{entry.name}/")
            elif entry.name.endswith(_DECIDING):
                yield f"{within}{entry.name}", entry.stat()


def features() -> tuple[str, ...]:
    """Return the features of this package that are on and affect graphs."""
    return tuple(name for name in on_now() if name.partition(":")[0] not in _SAME_GRAPHS)
