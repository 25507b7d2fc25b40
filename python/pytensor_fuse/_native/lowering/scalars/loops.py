"""ScalarLoop: a loop until a condition holds, or for a number of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.scalar.loop import ScalarLoop

from pytensor_fuse._native.lowering.scalars.registry import (
    inner_refusal,
    inner_values,
    known_numbers,
    scalar_refusal,
    scalar_rule,
)
from pytensor_fuse._native.lowering.tensors import DTYPES

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Builder, Node, Value


@scalar_refusal.register(ScalarLoop)
def _refusal(op: ScalarLoop, node: Node) -> str | None:
    if not op.is_while:
        # A negative number of steps raises an exception, which elementwise code cannot do.
        n_steps = known_numbers(node.inputs[0])
        if n_steps is None or (n_steps < 0).any():
            return "a scalar loop without condition, whose number of steps is not known"
    return inner_refusal(op.fgraph)


@scalar_rule.register(ScalarLoop)
def _scalar_loop(op: ScalarLoop, node: Node, b: Builder, args: list[Value]) -> list[Value]:
    n_carried = len(op.outputs) - bool(op.is_while)
    n_steps = b.op("maximum", b.cast(args[0], "i64"), b.index(0))
    carried = [
        b.cast(arg, DTYPES[variable.type.dtype])
        for arg, variable in zip(args[1:], op.inputs[:n_carried], strict=False)
    ]
    fixed = args[1 + n_carried :]

    if op.is_while:
        # The last output tells whether the condition has held.
        carried.append(b.constant("bool", False))
    with b.loop(n_steps) as loop:
        state = [b.carried(b.dtype(value)) for value in carried]
        following = inner_values(op.fgraph, b, [*state[:n_carried], *fixed])
        if op.is_while:
            loop.until = following[-1]
        return [
            b.carry(loop, inner, initial, then)
            for inner, initial, then in zip(state, carried, following, strict=True)
        ]
