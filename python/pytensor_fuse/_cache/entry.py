"""An entry of the cache: a rewritten graph, and what goes with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.basic import Constant

    from pytensor_fuse._cache.notes import Notes
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
    linked
        What Numba's linker made of the graph, which functions can share; None before that.
    """

    rewritten: Rewritten
    notes: Notes
    made: float
    seconds: float
    weight: int
    linked: Any = None


def weight(n_nodes: int, constants: Iterable[Constant[Any]]) -> int:
    """Return what so many nodes and the data of constants weigh."""
    data = (one.data for one in constants)
    n_bytes = sum(one.nbytes for one in data if isinstance(one, np.ndarray))
    return n_nodes + n_bytes // _BYTES_OF_A_NODE
