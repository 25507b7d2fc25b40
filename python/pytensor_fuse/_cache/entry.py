"""An entry of the cache: a rewritten graph, and what goes with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Constant

from pytensor_fuse._cache.inner_constants import Contents, inner_constants
from pytensor_fuse._pytensor.inner_graphs import graphs_inside

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.op import Op

    from pytensor_fuse._cache.notes import Notes
    from pytensor_fuse._cache.other_data import OtherData
    from pytensor_fuse._cache.rewritten import Rewritten

# Of data of constants: what weighs as much as a node.
_BYTES_OF_A_NODE = 1024


@dataclass(eq=False)
class Entry:
    """A rewritten graph, when it was made, and what is told of it.

    Attributes
    ----------
    rewritten
        The graph.
    notes
        What passes of this package noted of the graph, for those who ask why.
    made
        When, in seconds since the epoch.
    seconds
        How long rewriting took.
    weight
        How many nodes it keeps alive, those of the graph before rewriting, too; a kilobyte of
        constants counts as a node.
    other_data
        What other data in the places of large constants have to be like; None if they have to be
        the same.
    linked
        What Numba's linker made of the graph, which functions can share; None before that.
    native
        The machine code of our own of the graph, which functions can share; None before that.
    loaded
        The C code of its nodes, which functions can share; None before one was linked in C.
    kept_as
        The digest under which more of the graph may be on disk; None if it is in memory alone.
    code_weight
        What the machine code weighs besides, in nodes.
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
        # Other ops are those of the graph that there is.
        ops = [op for op, place in zip(made.ops, made.op_places, strict=True) if place is None]
        self._inside = Contents(inner_constants(ops))

    def is_as_it_was(self) -> bool:
        """Whether nobody has written to what the graph shares with the one it was made of."""
        return self._inside.are_the_same()


def weight(n_nodes: int, constants: Iterable[Constant[Any]], ops: Iterable[Op]) -> int:
    """Return what so many nodes, the data of constants and the inner graphs of ops weigh."""
    heavy = n_nodes
    for graph in graphs_inside(ops):
        heavy += len(graph.apply_nodes)
        heavy += _weight_of_data(one for one in graph.variables if isinstance(one, Constant))
    return heavy + _weight_of_data(constants)


def weight_of_bytes(n_bytes: int) -> int:
    """Return as how many nodes so many bytes count."""
    return n_bytes // _BYTES_OF_A_NODE


def _weight_of_data(constants: Iterable[Constant[Any]]) -> int:
    return weight_of_bytes(sum(_n_bytes(one.data) for one in constants))


def _n_bytes(data: Any) -> int:
    if not isinstance(data, np.ndarray):
        # Of a sparse matrix, its elements: they are about as many as their indices.
        data = getattr(data, "data", None)
    return data.nbytes if isinstance(data, np.ndarray) else 0
