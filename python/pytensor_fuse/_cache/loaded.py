"""The C code of a rewritten graph's nodes, shared by all functions that have the graph.

A module holds nothing of the function that it was loaded for: each thunk is a struct of its own, on
the storage of its function. What is saved is finding the module: PyTensor copies a graph of each
node, and tells it by its parts, which takes longer than all else that linking does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from pytensor.graph.basic import Apply
from pytensor.link.c.op import COp
from pytensor.link.vm import VMLinker

from pytensor_fuse._identity.contents import data_content
from pytensor_fuse._pytensor.c_thunks import (
    LoadedCode,
    constants_in_code,
    loaded_code,
    settings_of_code,
)
from pytensor_fuse._pytensor.patches import ReplacedAttributes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor.graph.basic import Variable
    from pytensor.link.basic import Linker

    from pytensor_fuse._cache.entry import Entry

# Of the constants that a node reads, by their places, what is in them.
_Contents = tuple[tuple[int, bytes | None], ...]


class _Loaded(NamedTuple):
    """The code of nodes, by their places in the graph.

    Attributes
    ----------
    settings
        Under which it was loaded.
    codes
        The code, and the constants that it was loaded for: code may depend on what is in them.
    """

    settings: tuple[Any, ...]
    codes: dict[int, tuple[LoadedCode, _Contents]]


class _Linking:
    """A graph that is about to be linked, with its entry."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._loaded: _Loaded | None = None

    def loaded(self) -> _Loaded:
        """Return the code that is there for the settings as they are when linking begins."""
        if self._loaded is None:
            settings = settings_of_code()
            known = self._entry.loaded
            if known is None or known.settings != settings:
                known = self._entry.loaded = _Loaded(settings, {})
            self._loaded = known
        return self._loaded


class _Waiting(NamedTuple):
    """A node that is about to be linked: its graph, its place there, and what it reads."""

    linking: _Linking
    place: int
    inputs: tuple[Variable[Any, Any], ...]


_waiting: WeakKeyDictionary[Apply[Any], _Waiting] = WeakKeyDictionary()

_stock_make: Any = COp.make_c_thunk


def expect_code(variables: Iterable[Variable[Any, Any]], entry: Entry, linker: Linker) -> None:
    """Let the nodes of a graph share their code with those of all that have the same entry.

    Parameters
    ----------
    variables
        Those of the graph, by their numbers.
    entry
        The entry.
    linker
        What the graph will be linked by. Only that of PyTensor's virtual machines asks for the code
        of one node at a time, and for the same whatever becomes of the results.
    """
    if type(linker) is not VMLinker:
        return
    linking = _Linking(entry)
    nodes = dict.fromkeys(one.owner for one in variables if one.owner is not None)
    for place, node in enumerate(nodes):
        if isinstance(node.op, COp):
            _waiting[node] = _Waiting(linking, place, tuple(node.inputs))


def _make_c_thunk(
    self: COp, node: Apply[Any], storage_map: Any, compute_map: Any, no_recycling: Any
) -> Any:
    waiting = _waiting.pop(node, None)
    if waiting is None or no_recycling or not _is_as_it_was(node, waiting):
        return _stock_make(self, node, storage_map, compute_map, no_recycling)
    codes = waiting.linking.loaded().codes
    known = codes.get(waiting.place)
    if known is not None and _contents(node, [at for at, _ in known[1]]) == known[1]:
        return known[0].thunk(node, storage_map, compute_map)
    thunk = _stock_make(self, node, storage_map, compute_map, no_recycling)
    contents = _contents(node, constants_in_code(node))
    # What is in other constants cannot be compared.
    if all(content is not None for _, content in contents):
        code = loaded_code(node, thunk)
        if code is not None:
            codes[waiting.place] = code, contents
    return thunk


def _contents(node: Apply[Any], places: Sequence[int]) -> _Contents:
    constants: list[Any] = [node.inputs[at] for at in places]
    return tuple([(at, data_content(one.data)) for at, one in zip(places, constants, strict=True)])


def _is_as_it_was(node: Apply[Any], waiting: _Waiting) -> bool:
    """Whether nobody has changed the graph since it came from the cache."""
    return len(node.inputs) == len(waiting.inputs) and all(
        one is was for one, was in zip(node.inputs, waiting.inputs, strict=True)
    )


def shared_code() -> ReplacedAttributes:
    """Return the patch that shares the code of nodes."""
    return ReplacedAttributes([COp], "make_c_thunk", _make_c_thunk)
