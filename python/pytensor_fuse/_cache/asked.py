"""What a function is asked for, before it is copied, and the empty graphs that stand for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pytensor.compile.io import SymbolicOutput

from pytensor_fuse._cache.origins import Origins

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._identity.interning import InternedGraph


class Asked:
    """A graph that a function is asked for, as it is given.

    Attributes
    ----------
    inputs, outputs
        Its own variables; the inputs with the shared variables that it reads.
    graph
        What tells it from others.
    is_taken
        Whether a maker has it already.
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
        """Return the parts of the graph as it is given."""
        return Origins(self.inputs, self.outputs)

    def copies(self) -> list[Variable[Any, Any]]:
        """Return the outputs of PyTensor's copy of the graph, which is the same each time."""
        if not self._copies:
            # Should another thread make one meanwhile, only one of them is kept.
            made = [getattr(one, "variable", one) for one in self._copy()]
            self._copies.setdefault("outputs", made)
        return self._copies["outputs"]

    def fill(self, fgraph: FunctionGraph) -> None:
        """Let an empty graph hold the copy, as if it had been made of it."""
        for variable in self.copies():
            fgraph.add_output(variable, reason="init")


class DeferredOutput(SymbolicOutput):
    """An output whose variable is copied when it is first asked for."""

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
        # Whoever unpickles it may not have this package.
        return SymbolicOutput, (self.variable, self.borrow)


# Empty graphs, with what is to be in them.
_empty: WeakKeyDictionary[FunctionGraph, Asked] = WeakKeyDictionary()


def put_aside(fgraph: FunctionGraph, asked: Asked) -> None:
    """Note what is to be in an empty graph."""
    _empty[fgraph] = asked


def take_asked(fgraph: FunctionGraph) -> Asked | None:
    """Return what is to be in an empty graph; None of any other, or if it was asked before."""
    return _empty.pop(fgraph, None)
