"""Graphs that are linked without Numba, as far as that shows before they are rewritten.

Numba's rules register rewriters when they are loaded: a cache that asked what is registered before
would find something else at the next compile. A linker that does without Numba says here for which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.fg import FunctionGraph

_known: Final[list[Callable[[FunctionGraph], bool]]] = []


def links_without_numba(answer: Callable[[FunctionGraph], bool]) -> None:
    """Let a linker say which graphs it links without Numba.

    Parameters
    ----------
    answer
        Whether it links a graph so, as far as it knows; rewriting may change it.
    """
    _known.append(answer)


def needs_numba(fgraph: FunctionGraph) -> bool:
    """Whether Numba's linker seems to need Numba for a graph."""
    return not any(answer(fgraph) for answer in _known)
