"""What a compilation depends on beside its graph, as values that can be compared and digested.

What is registered with PyTensor is told apart by identity within a process. Other processes are
told names, and the versions of the packages that have these.
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
from pytensor_fuse._cache.foreign import KNOWN_PACKAGES
from pytensor_fuse._cache.registration_digest import registration_digest
from pytensor_fuse._pytensor.surroundings import Watch, registered
from pytensor_fuse._startup.features import on_now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import Distribution

_OURS: Final = "pytensor_fuse"

# Features under which the same graphs come out.
_SAME_GRAPHS: Final = ("accelerators", "cache", "other_data")

# The files that decide what a package does: PyTensor has code in C beside its ops.
_DECIDING: Final = (".py", ".so", ".pyd", ".c", ".h", ".pyx")

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
        self.digest, self.culprit = registration_digest(items)


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


@cache
def versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of all that decides about a rewritten graph and its parts."""
    told = [
        ("python", f"{platform.python_implementation()} {sys.version}"),
        ("machine", f"{platform.machine()} {sys.byteorder}"),
        (_OURS, f"{_core.__version__} {_own_files()}"),
    ]
    names = ("pytensor", "pymc", "numpy", "scipy", "numba", "llvmlite")
    return (*told, *((name, version_of(name)) for name in names))


def version_of(name: str) -> str:
    """Return the version of a package, and what tells its files if somebody works on them.

    It is ``"none"`` of a package that is not installed.
    """
    # It loads archives and much else, which an import that compiles nothing does not wait for.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution(name)
    except PackageNotFoundError:
        return "none"
    if name not in KNOWN_PACKAGES or "editable" not in (found.read_text("direct_url.json") or ""):
        return _version(found)
    # Installed from a folder of sources, whose version stays while they change.
    home = find_spec(name)
    places = (home.submodule_search_locations if home is not None else None) or ()
    return f"{_version(found)} {' '.join(_files(Path(place)) for place in places)}"


def _own_files() -> str:
    """Return what tells the files of this package from others of the same version."""
    return _files(Path(__file__).parents[1])


def _version(found: Distribution) -> str:
    """Return the version in a package's metadata, of which all else takes long to parse."""
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
    """Return the features of this package that are on, but for those that change no graph."""
    return tuple(name for name in on_now() if name.partition(":")[0] not in _SAME_GRAPHS)
