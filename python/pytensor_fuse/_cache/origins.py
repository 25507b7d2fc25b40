"""Names and stack traces of a graph before it is rewritten, by places that equal graphs share.

Rewriters hand names and traces on from the variables that they replace. An equal graph has
variables in the same places, with other names and made by other lines, so that what is kept of a
rewritten graph is the place that a name or a trace came from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph


class Origins:
    """The variables of a graph in an order that equal graphs share, with their names and traces.

    Found when they are first asked for, which must be before the graph is changed, if at all:
    `keep` does it. O(nodes + edges).

    Parameters
    ----------
    fgraph
        The graph.
    """

    def __init__(self, fgraph: FunctionGraph) -> None:
        self._inputs = list(fgraph.inputs)
        self._outputs = list(fgraph.outputs)
        self._variables: list[Variable[Any, Any]] | None = None
        self._by_name: dict[str, int] = {}
        self._by_trace: dict[int, int] = {}

    def keep(self) -> None:
        """Find all that can be asked for, before the graph is changed."""
        for place, variable in enumerate(self._found()):
            if variable.name is not None:
                self._by_name.setdefault(variable.name, place)
            for stack in getattr(variable.tag, "trace", None) or ():
                # Stacks are handed on as they are; lists of them are made anew.
                self._by_trace.setdefault(id(stack), place)

    def of_name(self, name: str) -> int | str:
        """Return the place of the first variable of that name; the name if there is none."""
        return self._by_name.get(name, name)

    def of_trace(self, variable: Variable[Any, Any]) -> int | None:
        """Return the place of the first variable with a stack of ``variable``, if there is one."""
        for stack in getattr(variable.tag, "trace", None) or ():
            if (place := self._by_trace.get(id(stack))) is not None:
                return place
        return None

    def name_at(self, place: int) -> str | None:
        """Return the name of the variable at a place."""
        return self._found()[place].name

    def trace_at(self, place: int) -> Any:
        """Return the stacks of the variable at a place; None if it has none."""
        return getattr(self._found()[place].tag, "trace", None)

    def _found(self) -> list[Variable[Any, Any]]:
        if self._variables is None:
            self._variables = list(self._inputs)
            self._variables += _computed(self._outputs)
        return self._variables


def _computed(outputs: list[Variable[Any, Any]]) -> list[Variable[Any, Any]]:
    """Return what the nodes that outputs need compute, each node once, the last ones first."""
    found: list[Variable[Any, Any]] = []
    known: set[Apply[Any]] = set()
    pending: list[Variable[Any, Any]] = outputs[::-1]
    while pending:
        node = pending.pop().owner
        if node is not None and node not in known:
            known.add(node)
            found += node.outputs
            pending += node.inputs
    return found
