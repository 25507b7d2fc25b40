"""The C code of a rewritten graph's nodes, found again by other processes.

PyTensor finds the module of a node by a key that it makes of the code's text and the compiler's
arguments. To know these, each process asks the compiler what the processor offers and where
libraries are, imports what builds packages, and lists all modules that there are: for a graph of
some fifty nodes, most of the time that linking takes. Kept beside a rewritten graph are the files
that PyTensor's keys led to. A file is used again if nobody has touched it since, under the same
settings and versions, with the same compiler, on the same processor; all else is left to PyTensor.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytensor.configdefaults import config

from pytensor_fuse._cache import disk
from pytensor_fuse._cache.processor import processor
from pytensor_fuse._cache.surroundings import versions
from pytensor_fuse._pytensor.c_thunks import LoadedCode, loaded_module

if TYPE_CHECKING:
    from collections.abc import Mapping

# The variables by which compilers are told where to look for libraries.
_LOOKED_IN: Final = ("LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX")

# Of the constants that a node reads, by their places, what is in them.
Contents = tuple[tuple[int, bytes | None], ...]

# The code of nodes by their places, and the constants that it was loaded for.
Codes = dict[int, tuple[LoadedCode, Contents]]


def read_codes(graph: bytes, settings: tuple[Any, ...]) -> Codes:
    """Return the code of a rewritten graph's nodes that is on disk and as it was.

    Parameters
    ----------
    graph
        The digest of the graph.
    settings
        Under which it is to be linked.
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
    """Keep on disk where the code of a rewritten graph's nodes is.

    Raises
    ------
    Exception
        If that cannot be written.
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
    """Return what tells which libraries PyTensor would find here for C code, a BLAS above all.

    Environments of one user share PyTensor's directory, and code of one would load the libraries
    of another. Whoever installs a library where libraries are writes to that folder. PyTensor, too,
    looks once in a process.
    """
    kind = getattr(sys.implementation, "_multiarch", "")
    folders = {f"{root}/lib" for root in (sys.prefix, sys.base_prefix, "/usr", "/usr/local", "")}
    folders |= {f"{folder}64" for folder in folders} | {f"{folder}/{kind}" for folder in folders}
    asked = [os.environ.get(name) for name in _LOOKED_IN]
    found = [(one, _stamp(one)) for one in sorted(folders | {"/etc/alternatives"})]
    return sys.prefix, sys.base_prefix, asked, found


def _file(module: Any) -> tuple[str, tuple[int, int]] | None:
    """Return where a module is within PyTensor's directory, and its stamp."""
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
    """Return when a file was written and how long it is; None if there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
