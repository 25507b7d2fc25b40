"""Rules of merging in Python, which the table in Rust calls: equality and permission."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._merging.numbers import Numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.op import Op

    Node = Apply[Any]
    Var = Variable[Any, Any]


class MergeRules:
    """The rules for one graph."""

    def __init__(self, fgraph: FunctionGraph) -> None:
        self._fgraph = fgraph
        self._refused: set[tuple[Node, Node]] = set()
        self.numbers = Numbers()

    def describe_op(self, op: Op) -> tuple[int, bool]:
        """Return a number that equal ops share, and whether ``op`` is a kernel.

        The number depends only on the class, since hashing an op takes longer than the rest of a
        look-up.
        """
        class_ = type(op)
        is_kernel = class_ is Elemwise and type(cast("Elemwise", op).scalar_op) is Composite
        return self.numbers.of_class(class_), is_kernel

    def number_of_op(self, op: Op) -> int:
        """Return the number of ``op`` and of its equals."""
        return self.numbers.of_op(op)

    def constant_number(self, variable: Var) -> int | None:
        """Return the number of a constant and of its equals; None if it is not a constant."""
        return self.numbers.of_constant(variable)

    def may_merge(self, node: Node, other: Node) -> bool:
        """Return whether two equal nodes may be merged, as far as is known without an edit."""
        if (node, other) in self._refused or (other, node) in self._refused:
            return False
        # Two destroyers of one variable are always refused.
        clients = self._fgraph.clients
        return not (_is_destroyed(node, clients) and _is_destroyed(other, clients))

    def direction(self, node: Node, other: Node) -> int:
        """Return 1 if ``other`` can replace ``node`` in all outputs, -1 if the reverse, else 0."""
        pairs = [(a.type, b.type) for a, b in zip(node.outputs, other.outputs, strict=True)]
        if all(mine.is_super(its) for mine, its in pairs):
            return 1
        return -1 if all(its.is_super(mine) for mine, its in pairs) else 0

    def refuse(self, pairs: Iterable[tuple[Node, Node]]) -> None:
        """Exclude pairs of nodes from merging for now."""
        self._refused.update(pairs)

    def forget_refused(self) -> None:
        """Allow refused pairs again."""
        self._refused.clear()


def _is_destroyed(node: Node, clients: dict[Var, list[tuple[Node, int]]]) -> bool:
    """Return whether a client of the node's first output overwrites it."""
    return any(
        position in positions
        for client, position in clients[node.outputs[0]]
        for positions in client.op.destroy_map.values()
    )
