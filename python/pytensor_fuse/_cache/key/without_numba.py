"""Graphs that are linked without Numba, as far as this is known before they are rewritten.

Numba's rules register rewriters when they are loaded, so a snapshot of the registrations before
that would differ at the next compile. A linker that needs no Numba declares its graphs here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.fg import FunctionGraph

_known: Final[list[Callable[[FunctionGraph], bool]]] = []


def links_without_numba(answer: Callable[[FunctionGraph], bool]) -> None:
    """Register a linker's predicate for graphs that it links without Numba.

    Parameters
    ----------
    answer
        Whether it links a graph without Numba, as far as is known; rewriting may change this.
    """
    _known.append(answer)


def needs_numba(fgraph: FunctionGraph) -> bool:
    """Whether Numba's linker probably needs Numba for a graph."""
    return not any(answer(fgraph) for answer in _known)
