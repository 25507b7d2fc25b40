"""An entry of the cache: a rewritten graph with its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytensor_fuse._cache.data.inner_constants import Contents, inner_constants
from pytensor_fuse._pytensor.graphs.inner_graphs import graphs_inside, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.basic import Constant
    from pytensor.graph.op import Op

    from pytensor_fuse._cache.data.rewritten import Rewritten
    from pytensor_fuse._cache.data.substitution import OtherData
    from pytensor_fuse._cache.store.notes import Notes

# The bytes of constants that weigh as much as a node.
_BYTES_OF_A_NODE = 1024


@dataclass(eq=False)
class Entry:
    """A rewritten graph, with its time, notes and code.

    Attributes
    ----------
    rewritten
        The graph.
    notes
        Notes of this package's passes about the graph, for explanations.
    made
        The time of rewriting, in seconds since the epoch.
    seconds
        The duration of rewriting.
    weight
        The number of nodes that it keeps alive, including those of the graph before rewriting; a
        kilobyte of constants counts as a node.
    other_data
        The conditions on other data in the places of large constants; None if the data must be
        equal.
    linked
        The result of Numba's linker, which functions can share; None before the first linking.
    native
        Our machine code of the graph, which functions can share; None before the first linking.
    loaded
        The C code of its nodes, which functions can share; None before one was linked in C.
    kept_as
        The digest of the graph's data on disk; None if it is only in memory.
    code_weight
        The additional weight of the machine code, in nodes.
    """

    rewritten: Rewritten
    notes: Notes
    made: float
    seconds: float
    weight: int
    other_data: OtherData | None = None
    linked: Any = None
    native: Any = None
    loaded: Any = None
    kept_as: bytes | None = None
    code_weight: int = 0

    def __post_init__(self) -> None:
        made = self.rewritten
        # The other ops are taken from the graph that is compiled.
        ops = [op for op, place in zip(made.ops, made.op_places, strict=True) if place is None]
        self._inside = Contents(inner_constants(ops))

    def is_as_it_was(self) -> bool:
        """Whether the constants that the entry shares with the original graph are unchanged."""
        return self._inside.are_the_same()


def weight(n_nodes: int, constants: Iterable[Constant[Any]], ops: Iterable[Op]) -> int:
    """Return the weight of a number of nodes, the data of constants and ops' inner graphs."""
    heavy = n_nodes
    for graph in graphs_inside(ops):
        heavy += len(graph.apply_nodes)
        heavy += _weight_of_data(parts_of(graph).constants)
    return heavy + _weight_of_data(constants)


def weight_of_bytes(n_bytes: int) -> int:
    """Return the weight of a number of bytes, in nodes."""
    return n_bytes // _BYTES_OF_A_NODE


def _weight_of_data(constants: Iterable[Constant[Any]]) -> int:
    return weight_of_bytes(sum(_n_bytes(one.data) for one in constants))


def _n_bytes(data: Any) -> int:
    if not isinstance(data, np.ndarray):
        # A sparse matrix counts its elements, which are about as many as their indices.
        data = getattr(data, "data", None)
    return data.nbytes if isinstance(data, np.ndarray) else 0
