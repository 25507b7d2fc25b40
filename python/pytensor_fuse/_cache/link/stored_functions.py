"""Numba's code of rewritten graphs on disk, found by other processes without translating a graph.

PyTensor translates each node again before Numba can look for the code of the whole graph: for a
graph of some hundred nodes, this takes most of the time of linking. The result of PyTensor's
translation, a short source and a key, is stored beside a rewritten graph. With these, Numba
finds its code; if it has none for the types of a call's arguments, the graph is translated then.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from pytensor_fuse._cache.key.environment import versions
from pytensor_fuse._cache.store import disk
from pytensor_fuse._pytensor.linking.numba_sources import (
    Source,
    are_known,
    may_be_untranslated,
    source_of,
    without_translation,
)
from pytensor_fuse._pytensor.rewriting.environment import TO_BE_FOUND_OUT, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.type import Type

    from pytensor_fuse._cache.data.inner_constants import Contents

# Settings of C code, which PyTensor may determine at any time.
_OF_C_CODE = ("blas__", "gcc__", "cxx", "cmodule__")


def read_function(
    graph: bytes,
    contents: Contents,
    rules: list[Any],
    settings_of_numba: tuple[Any, ...],
    types: Iterable[Type[Any]],
    make: Callable[[], FunctionGraph],
) -> Any | None:
    """Return the jitted function of a graph; None if Numba has, or may have, no code for it.

    Parameters
    ----------
    graph
        The digest of the graph, except for the data of some constants.
    contents
        The contents of all of its constants.
    rules
        The rules by which PyTensor would translate it.
    settings_of_numba
        The settings of Numba.
    types
        The types of its inputs and outputs.
    make
        Returns an equal graph.
    """
    if not (are_known(rules) and may_be_untranslated()):
        return None
    kept = disk.default_disk().get(_key(graph, contents, settings_of_numba))
    return None if kept is None else without_translation(Source(*kept), types, make)


def store_function(
    graph: bytes,
    contents: Contents,
    rules: list[Any],
    settings_of_numba: tuple[Any, ...],
    converted: Any,
) -> None:
    """Store the translation of a graph on disk.

    Raises
    ------
    Exception
        If it cannot be written.
    """
    source = source_of(converted) if are_known(rules) and may_be_untranslated() else None
    if source is not None:
        disk.default_disk().put(_key(graph, contents, settings_of_numba), tuple(source))


def _key(graph: bytes, contents: Contents, settings_of_numba: tuple[Any, ...]) -> bytes:
    made = blake2b(b"pytensor-fuse function 2 " + graph, digest_size=32)
    told = [
        (name, value)
        for name, value in settings()
        if value != TO_BE_FOUND_OUT and not name.startswith(_OF_C_CODE)
    ]
    parts = (told, settings_of_numba, versions(), contents.told())
    made.update(repr(parts).encode("utf-8", "surrogatepass"))
    return made.digest()
