"""Registry of scalar rules: from the values of a node's operands to those of its results.

Each kind of op registers its rule with `scalar_rule`. By default, a rule computes in the dtype of
the output, as NumPy does; its result is cast to the declared dtype.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import DimShuffle

from pytensor_fuse._native.lowering.registry import NoRuleError, dtype_refusal
from pytensor_fuse._native.lowering.tensors import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.lowering.types import Array, Builder, Node, Value, Variable

    ScalarRule = Callable[[Any, Node, Builder, list[Value]], Value | list[Value]]


@singledispatch
def scalar_rule(op: Any, node: Node, b: Builder, args: list[Value]) -> Value | list[Value]:
    """Return the value of a scalar op, or one for each output; dispatches on the class of op."""
    raise NoRuleError(f"no rule for the scalar op {op}")


@singledispatch
def scalar_refusal(op: Any, node: Node) -> str | None:
    """Return the reason why a scalar op cannot be lowered, or None.

    Parameters
    ----------
    op
        The scalar op.
    node
        Its node, or that of an Elemwise of it.
    """
    if scalar_rule.dispatch(type(op)) is scalar_rule.dispatch(object):
        return f"no rule for the scalar op {op}"
    return None


def inner_refusal(graph: Any) -> str | None:
    """Return the reason why a graph of scalar ops cannot be lowered, or None."""
    for node in graph.toposort():
        why = dtype_refusal(node) or scalar_refusal(node.op, node)
        if why is not None:
            return why
    return None


def scalar_values(op: Any, node: Node, b: Builder, args: Sequence[Value]) -> list[Value]:
    """Lower a scalar op.

    Parameters
    ----------
    op
        The scalar op.
    node
        Its node, or one whose inputs and outputs have the same dtypes.
    b
        The builder of the program.
    args
        The values of the operands.

    Returns
    -------
    list of Value
        A value for each output, of the declared dtype.
    """
    found = scalar_rule(op, node, b, list(args))
    outs = found if isinstance(found, list) else [found]
    return [
        b.cast(out, DTYPES[variable.type.dtype])
        for out, variable in zip(outs, node.outputs, strict=True)
    ]


def inner_values(graph: Any, b: Builder, args: Sequence[Value]) -> list[Value]:
    """Lower a graph of scalar ops."""
    values: dict[Variable, Value] = {}
    for variable, given in zip(graph.inputs, args, strict=True):
        values[variable] = b.cast(given, DTYPES[variable.type.dtype])

    def value_of(variable: Variable) -> Value:
        found = values.get(variable)
        if found is None:
            found = values[variable] = literal(b, variable)
        return found

    for node in graph.toposort():
        outs = scalar_values(node.op, node, b, [value_of(one) for one in node.inputs])
        values.update(zip(node.outputs, outs, strict=True))
    return [value_of(one) for one in graph.outputs]


def literal(b: Builder, constant: Any) -> Value:
    """Return the value of a constant scalar."""
    return b.constant(DTYPES[constant.type.dtype], np.asarray(constant.data).item())


def known_numbers(variable: Any) -> Array | None:
    """Return the contents of a constant, up to a permutation of axes, or None."""
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        variable = variable.owner.inputs[0]
    data = getattr(variable, "data", None)
    return None if data is None else np.asarray(data)


def out_dtype(node: Node) -> str:
    """Return the dtype of the first output of a node, by its name in programs."""
    return DTYPES[node.outputs[0].type.dtype]


@scalar_rule.register(Composite)
def _composite(op: Composite, node: Node, b: Builder, args: list[Value]) -> list[Value]:
    return inner_values(op.fgraph, b, args)


@scalar_refusal.register(Composite)
def _composite_refusal(op: Composite, node: Node) -> str | None:
    return inner_refusal(op.fgraph)
