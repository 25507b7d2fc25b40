"""The C code of a rewritten graph's nodes on disk, for other processes.

PyTensor finds the module of a node by a key that consists of the code's text and the compiler's
arguments. To compute them, each process queries the compiler for the features of the processor and
the locations of libraries, imports setuptools, and lists all existing modules: for a graph of
some fifty nodes, this takes most of the time of linking. The files that PyTensor's keys led to are
stored beside a rewritten graph. A file is reused if it is unchanged, under the same
settings and versions, with the same compiler, on the same processor; otherwise PyTensor searches.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytensor.configdefaults import config

from pytensor_fuse._cache.key.environment import versions
from pytensor_fuse._cache.key.processor import processor
from pytensor_fuse._cache.store import disk
from pytensor_fuse._pytensor.linking.c_thunks import LoadedCode, loaded_module

if TYPE_CHECKING:
    from collections.abc import Mapping

# The environment variables with the compiler's search paths for libraries.
_LOOKED_IN: Final = ("LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX")

# The contents of the constants that a node reads, by their positions.
Contents = tuple[tuple[int, bytes | None], ...]

# The code of nodes by their positions, and the constants that it was loaded for.
Codes = dict[int, tuple[LoadedCode, Contents]]


def read_codes(graph: bytes, settings: tuple[Any, ...]) -> Codes:
    """Return the code of a rewritten graph's nodes from disk, where the files are unchanged.

    Parameters
    ----------
    graph
        The digest of the graph.
    settings
        The settings under which it will be linked.
    """
    key = _key(graph, settings)
    kept = None if key is None else disk.default_disk().get(key)
    codes = {}
    for place, file, code, contents in kept or ():
        path = _unchanged(file)
        if path is not None:
            codes[place] = code._replace(module=loaded_module(path)), contents
    return codes


def store_codes(graph: bytes, settings: tuple[Any, ...], codes: Mapping[int, Any]) -> None:
    """Store the locations of the code of a rewritten graph's nodes on disk.

    Raises
    ------
    Exception
        If they cannot be written.
    """
    key = _key(graph, settings)
    if key is None:
        return
    kept = []
    for place, (code, contents) in codes.items():
        file = _file(code.module)
        if file is not None:
            kept.append((place, file, code._replace(module=None), contents))
    disk.default_disk().put(key, kept)


def _key(graph: bytes, settings: tuple[Any, ...]) -> bytes | None:
    runs_on = processor()
    compiler = _stamp(config.cxx) if config.cxx else None
    if runs_on is None or compiler is None:
        return None
    made = blake2b(b"pytensor-fuse code 1 " + graph, digest_size=32)
    parts = (settings, versions(), runs_on, compiler, _libraries())
    made.update(repr(parts).encode("utf-8", "surrogatepass"))
    return made.digest()


@cache
def _libraries() -> tuple[Any, ...]:
    """Return a fingerprint of the libraries that PyTensor would find for C code, mainly a BLAS.

    Environments of one user share PyTensor's directory, and code of one would load the libraries
    of another. Installing a library changes the time stamp of its folder. PyTensor, too,
    searches once in a process.
    """
    kind = getattr(sys.implementation, "_multiarch", "")
    folders = {f"{root}/lib" for root in (sys.prefix, sys.base_prefix, "/usr", "/usr/local", "")}
    folders |= {f"{folder}64" for folder in folders} | {f"{folder}/{kind}" for folder in folders}
    asked = [os.environ.get(name) for name in _LOOKED_IN]
    found = [(one, _stamp(one)) for one in sorted(folders | {"/etc/alternatives"})]
    return sys.prefix, sys.base_prefix, asked, found


def _file(module: Any) -> tuple[str, tuple[int, int]] | None:
    """Return the path of a module within PyTensor's directory, and its stamp."""
    path = Path(module.__file__)
    stamp = _stamp(path)
    try:
        within = path.relative_to(config.compiledir)
    except ValueError:
        return None
    return None if stamp is None else (str(within), stamp)


def _unchanged(file: tuple[str, tuple[int, int]]) -> Path | None:
    within, stamp = file
    path = Path(config.compiledir) / within
    return path if _stamp(path) == stamp else None


def _stamp(path: str | Path) -> tuple[int, int] | None:
    """Return the time stamp and the size of a file; None if it does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
