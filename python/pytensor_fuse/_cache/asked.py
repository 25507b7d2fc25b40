"""Graphs that a function is requested for, before they are copied, and their empty stand-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pytensor.compile.io import SymbolicOutput

from pytensor_fuse._cache.key.places import Origins

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._identity.interning import InternedGraph


class Asked:
    """The original graph that a function is requested for.

    Attributes
    ----------
    inputs, outputs
        Its own variables; the inputs include the shared variables that it reads.
    graph
        The interned graph, which identifies it.
    is_taken
        Whether a maker has taken it already.
    """

    def __init__(
        self,
        inputs: Sequence[Variable[Any, Any]],
        outputs: Sequence[Variable[Any, Any]],
        graph: InternedGraph,
        copy: Callable[[], list[Any]],
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.graph = graph
        self.is_taken = False
        self._copy = copy
        self._copies: dict[str, list[Variable[Any, Any]]] = {}

    def origins(self) -> Origins:
        """Return the parts of the original graph."""
        return Origins(self.inputs, self.outputs)

    def copies(self) -> list[Variable[Any, Any]]:
        """Return the outputs of PyTensor's copy of the graph, which is the same each time."""
        if not self._copies:
            # If another thread makes a copy meanwhile, only one of them is stored.
            made = [getattr(one, "variable", one) for one in self._copy()]
            self._copies.setdefault("outputs", made)
        return self._copies["outputs"]

    def fill(self, fgraph: FunctionGraph) -> None:
        """Fill an empty graph with the copy, as if it had been made from it."""
        for variable in self.copies():
            fgraph.add_output(variable, reason="init")


class DeferredOutput(SymbolicOutput):
    """An output whose variable is copied on first access."""

    def __init__(self, asked: Asked, place: int, borrow: Any) -> None:
        self.asked = asked
        self.place = place
        self._own: Variable[Any, Any] | None = None
        self.borrow = borrow

    @property
    def variable(self) -> Any:
        """The variable, of PyTensor's copy."""
        return self.asked.copies()[self.place] if self._own is None else self._own

    @variable.setter
    def variable(self, value: Any) -> None:
        self._own = value

    def __reduce__(self) -> tuple[Any, ...]:
        # The process that unpickles it may not have this package.
        return SymbolicOutput, (self.variable, self.borrow)


# Empty graphs, with the graphs that they stand for.
_empty: WeakKeyDictionary[FunctionGraph, Asked] = WeakKeyDictionary()


def put_aside(fgraph: FunctionGraph, asked: Asked) -> None:
    """Record the graph that an empty graph stands for."""
    _empty[fgraph] = asked


def take_asked(fgraph: FunctionGraph) -> Asked | None:
    """Return and forget the graph that an empty graph stands for; None if there is none."""
    return _empty.pop(fgraph, None)
