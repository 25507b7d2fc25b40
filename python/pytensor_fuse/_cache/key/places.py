"""The parts of a graph before rewriting, by positions that equal graphs share.

Much of a rewritten graph comes from the original: rewriters pass on the names and traces of the
variables that they replace, and do not change most ops and constants. An equal graph has its
own parts at the same positions. So an entry stores positions, and a function that is
made from the entry contains no part of the original graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor_fuse._identity.interning import walk_parts
from pytensor_fuse._identity.terms import intern_walked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply, Constant, Variable
    from pytensor.graph.op import Op

    from pytensor_fuse._identity.interning import InternedGraph

# The only notes in the tags of nearly all variables, and of nearly all nodes.
_HARMLESS: Final = ("trace", "imported_by")


class Origins:
    """The nodes, variables and constants of a graph, in an order that equal graphs share.

    O(nodes + edges). Look up the place of a part only after `keep`.

    Parameters
    ----------
    inputs, outputs
        The graph, before it is rewritten.

    Attributes
    ----------
    nodes
        The nodes, each once, the last ones first.
    variables
        The inputs, and the outputs of the nodes.
    constants
        The constants that are outputs, and those that nodes read, once for each reading.
    noted_variables, noted_nodes
        The variables and constants, and the nodes, whose tags contain more than their origin.

    Raises
    ------
    FreezeError
        If a variable depends on itself.
    """

    def __init__(
        self, inputs: Sequence[Variable[Any, Any]], outputs: Sequence[Variable[Any, Any]]
    ) -> None:
        self._inputs = inputs
        self._walked, parts = walk_parts(inputs, outputs, _HARMLESS)
        self.nodes: list[Apply[Any]] = parts.nodes
        self.variables: list[Variable[Any, Any]] = parts.variables
        self.constants: list[Constant[Any]] = parts.constants
        self.noted_variables: list[Variable[Any, Any]] = parts.noted_variables
        self.noted_nodes: list[Apply[Any]] = parts.noted_nodes
        self._names = parts.names
        self._by_name: dict[str, int] = {}
        self._by_trace: dict[int, int] = {}
        self._by_op: dict[int, int] = {}
        self._by_constant: dict[int, int] = {}

    def interned(self) -> InternedGraph:
        """Return the graph in the hash-cons table, with all its nodes, including equal ones.

        Raises
        ------
        FreezeError
            If an input is given twice, or a variable is neither computed nor an input nor a
            constant.
        """
        return intern_walked(self._inputs, self._walked, fold=False)

    def same_names(self) -> tuple[tuple[int, int], ...]:
        """Return the places of variables with names, each with the first place of its name."""
        first: dict[str, int] = {}
        return tuple([(place, first.setdefault(name, place)) for place, name in self._names])

    def keep(self) -> None:
        """Find the places of all parts, before the graph is changed."""
        for place, name in self._names:
            self._by_name.setdefault(name, place)
        for place, variable in enumerate(self.variables):
            for stack in getattr(variable.tag, "trace", None) or ():
                # Rewriters pass on the stacks themselves, in new lists.
                self._by_trace.setdefault(id(stack), place)
        for place, node in enumerate(self.nodes):
            self._by_op.setdefault(id(node.op), place)
        for place, constant in enumerate(self.constants):
            self._by_constant.setdefault(id(constant), place)

    def of_name(self, name: str) -> int | str:
        """Return the place of the first variable of that name; the name itself if there is none."""
        return self._by_name.get(name, name)

    def of_trace(self, variable: Variable[Any, Any]) -> int | None:
        """Return the place of the first variable with a stack of ``variable``, if there is one."""
        for stack in getattr(variable.tag, "trace", None) or ():
            if (place := self._by_trace.get(id(stack))) is not None:
                return place
        return None

    def of_op(self, op: Op) -> int | None:
        """Return the place of the first node with this op, by identity, if there is one."""
        return self._by_op.get(id(op))

    def of_constant(self, constant: Constant[Any]) -> int | None:
        """Return the first place where this constant is read, by identity, if there is one."""
        return self._by_constant.get(id(constant))

    def trace_at(self, place: int) -> Any:
        """Return the stacks of the variable at a place; None if it has none."""
        return getattr(self.variables[place].tag, "trace", None)
