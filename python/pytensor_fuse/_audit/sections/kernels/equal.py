"""Equality of kernels up to a renaming of their inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.scalar.basic import get_scalar_type
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._identity.terms import intern_graph, term

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply

    from pytensor_fuse._core import Term


class Expressions:
    """Keys of the computations of kernels; equal kernels have equal keys."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Term, tuple[int, ...]]] = {}

    def key(self, node: Apply[Any]) -> Any:
        """Return the key of a kernel.

        Inputs are numbered by their first appearance in the expression, outputs first to last and
        operands left to right, independent of their order. Hence kernels have the same key exactly
        if a permutation of the inputs of one yields the other.
        """
        patterns = [(v.type.dtype, getattr(v.type, "broadcastable", "number")) for v in node.inputs]
        dtypes = tuple([dtype for dtype, _ in patterns])
        expression = node.op.scalar_op if isinstance(node.op, Elemwise) else node.op
        found = (term(expression), dtypes)
        if found not in self._known:
            self._known[found] = _canonical(expression, dtypes)
        root, order = self._known[found]
        return root, tuple([patterns[i] for i in order])


def _canonical(expression: Any, dtypes: Sequence[str]) -> tuple[Term, tuple[int, ...]]:
    """Return the term of an expression with its inputs in order of appearance, and that order."""
    if hasattr(expression, "fgraph"):
        inputs: Sequence[Any] = expression.fgraph.inputs
        outputs: Sequence[Any] = expression.fgraph.outputs
    else:
        inputs = [get_scalar_type(dtype).make_variable() for dtype in dtypes]
        outputs = expression.make_node(*inputs).outputs
    order = _order_of_appearance(inputs, outputs)
    return intern_graph([inputs[i] for i in order], outputs).root, order


def _order_of_appearance(inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[int, ...]:
    numbers = {variable: i for i, variable in enumerate(inputs)}
    order: dict[int, None] = {}
    seen: set[Any] = set()
    stack = list(reversed(outputs))
    while stack:
        variable = stack.pop()
        if variable in numbers:
            order[numbers[variable]] = None
        elif variable.owner is not None and variable.owner not in seen:
            seen.add(variable.owner)
            stack += reversed(variable.owner.inputs)
    # Inputs that are not read differ only by their types.
    unused = [i for i in range(len(inputs)) if i not in order]
    return (*order, *sorted(unused, key=lambda i: inputs[i].type.dtype))
