"""The C code of a rewritten graph's nodes, shared by all functions of the graph.

A module contains nothing of the function that it was loaded for: each thunk has a struct of its
own, on the storage of its function. Sharing saves the search for the module: PyTensor copies a
graph of each node, and identifies it by its parts, which takes most of the time of linking.
Other processes find the code of a graph on disk, see `stored_code`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from pytensor.graph.basic import Apply
from pytensor.link.c.op import COp
from pytensor.link.vm import VMLinker

from pytensor_fuse._cache.link.stored_code import Codes, Contents, read_codes, store_codes
from pytensor_fuse._cache.store import disk
from pytensor_fuse._identity.contents import data_content
from pytensor_fuse._pytensor.linking.c_thunks import (
    LoadedCode,
    constants_in_code,
    loaded_code,
    settings_of_code,
)
from pytensor_fuse._pytensor.patching.patches import ReplacedAttributes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor.graph.basic import Variable
    from pytensor.link.basic import Linker


class Loaded(NamedTuple):
    """The code of nodes, by their positions in the graph.

    Attributes
    ----------
    settings
        The settings under which it was loaded.
    codes
        The code, and the constants that it was loaded for: code may depend on their contents.
    """

    settings: tuple[Any, ...]
    codes: Codes


class OwnsCode(Protocol):
    """A representative of all equal graphs.

    Attributes
    ----------
    loaded
        The code of their nodes; None before one was linked.
    kept_as
        The digest of the graphs' data on disk; None if nothing is there.
    """

    loaded: Loaded | None
    kept_as: bytes | None


class _Linking:
    """A graph that is about to be linked.

    Parameters
    ----------
    entry
        The representative of all graphs that are equal to it.
    n_nodes
        The number of its nodes that may have code.
    """

    def __init__(self, entry: OwnsCode, n_nodes: int) -> None:
        self._entry = entry
        self._n_missing = n_nodes
        self._loaded: Loaded | None = None
        self._has_new = False

    def loaded(self) -> Loaded:
        """Return the code for the settings at the beginning of linking."""
        if self._loaded is None:
            settings = settings_of_code()
            known = self._entry.loaded
            if known is None or known.settings != settings:
                known = self._entry.loaded = Loaded(settings, self._stored(settings))
            self._loaded = known
        return self._loaded

    def add(self, place: int, code: LoadedCode, contents: Contents) -> None:
        """Record the code of the node at a position."""
        self.loaded().codes[place] = code, contents
        self._has_new = True

    def linked(self) -> None:
        """Count a linked node; after the last one, store new code on disk."""
        self._n_missing -= 1
        graph, loaded = self._entry.kept_as, self._loaded
        if self._n_missing or not self._has_new or graph is None or loaded is None:
            return
        settings, codes = loaded.settings, dict(loaded.codes)
        disk.tried("writing", lambda: store_codes(graph, settings, codes))

    def _stored(self, settings: tuple[Any, ...]) -> Codes:
        graph = self._entry.kept_as
        if graph is None:
            return {}
        found: Codes | None = disk.tried("reading", lambda: read_codes(graph, settings))
        return found or {}


class _Waiting(NamedTuple):
    """A node that is about to be linked: its graph, its position there, and its inputs."""

    linking: _Linking
    place: int
    inputs: tuple[Variable[Any, Any], ...]


_waiting: WeakKeyDictionary[Apply[Any], _Waiting] = WeakKeyDictionary()

_stock_make: Any = COp.make_c_thunk


def expect_code(variables: Iterable[Variable[Any, Any]], entry: OwnsCode, linker: Linker) -> None:
    """Share the code of a graph's nodes with all graphs of the same entry.

    Parameters
    ----------
    variables
        The variables of the graph, by their numbers.
    entry
        The entry.
    linker
        The linker of the graph. Only the linker of PyTensor's virtual machines requests the code
        of one node at a time, independently of the use of the results.
    """
    if type(linker) is not VMLinker:
        return
    nodes = enumerate(dict.fromkeys(one.owner for one in variables if one.owner is not None))
    in_c = [(place, node) for place, node in nodes if isinstance(node.op, COp)]
    linking = _Linking(entry, len(in_c))
    for place, node in in_c:
        _waiting[node] = _Waiting(linking, place, tuple(node.inputs))


def _make_c_thunk(
    self: COp, node: Apply[Any], storage_map: Any, compute_map: Any, no_recycling: Any
) -> Any:
    waiting = _waiting.pop(node, None)
    if waiting is None or no_recycling or not _is_as_it_was(node, waiting):
        return _stock_make(self, node, storage_map, compute_map, no_recycling)
    linking, place, _ = waiting
    try:
        known = linking.loaded().codes.get(place)
        if known is not None and _contents(node, [at for at, _ in known[1]]) == known[1]:
            return known[0].thunk(node, storage_map, compute_map)
        thunk = _stock_make(self, node, storage_map, compute_map, no_recycling)
        contents = _contents(node, constants_in_code(node))
        # The contents of other constants cannot be compared.
        if all(content is not None for _, content in contents):
            code = loaded_code(node, thunk)
            if code is not None:
                linking.add(place, code, contents)
        return thunk
    finally:
        # An op may have no C code for this node, which then runs in Python.
        linking.linked()


def _contents(node: Apply[Any], places: Sequence[int]) -> Contents:
    constants: list[Any] = [node.inputs[at] for at in places]
    return tuple([(at, data_content(one.data)) for at, one in zip(places, constants, strict=True)])


def _is_as_it_was(node: Apply[Any], waiting: _Waiting) -> bool:
    """Whether the inputs of a node are unchanged since the graph came from the cache."""
    return len(node.inputs) == len(waiting.inputs) and all(
        one is was for one, was in zip(node.inputs, waiting.inputs, strict=True)
    )


def shared_code() -> ReplacedAttributes:
    """Return the patch that shares the code of nodes."""
    return ReplacedAttributes([COp], "make_c_thunk", _make_c_thunk)
