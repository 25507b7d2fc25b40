"""ScalarLoop: a loop until a condition holds, or for a number of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
    from collections.abc import Callable

    from pytensor_fuse._native.lowering.annotations import Builder, Node, Value


# The loop has no early exit: after its condition holds, nested blocks of steps are skipped instead.
# A loop of a million steps that ends at once thus tests its condition a thousand times.
_BLOCK: Final = 32


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

    def step(state: list[Value]) -> list[Value]:
        return inner_values(op.fgraph, b, [*state[:n_carried], *fixed])

    if not op.is_while:
        return _repeated(b, n_steps, carried, lambda state, _: step(state))
    return _until(b, n_steps, [*carried, b.constant("bool", False)], step)


def _repeated(
    b: Builder,
    n_steps: Value,
    first: list[Value],
    step: Callable[[list[Value], Value], list[Value]],
) -> list[Value]:
    """Return the state after a number of steps."""
    with b.loop(n_steps) as loop:
        state = [b.carried(b.dtype(value)) for value in first]
        following = step(state, loop.index)
        return [
            b.carry(loop, inner, initial, then)
            for inner, initial, then in zip(state, first, following, strict=True)
        ]


def _until(
    b: Builder, n_steps: Value, first: list[Value], step: Callable[[list[Value]], list[Value]]
) -> list[Value]:
    """Return the state after a number of steps, or after the first one that sets its last part."""
    block = b.index(_BLOCK)
    blocks = b.index(_BLOCK * _BLOCK)

    def unless_done(
        state: list[Value], number: Value, run: Callable[[list[Value]], list[Value]]
    ) -> list[Value]:
        goes_on = b.op("and", b.op("not", state[-1]), b.op("lt", number, n_steps))
        with b.block() as then:
            following = run(state)
        with b.block() as otherwise:
            pass
        return b.branch(goes_on, then, otherwise, list(zip(following, state, strict=True)))

    def outer(state: list[Value], index: Value) -> list[Value]:
        begin = b.op("mul", index, blocks)

        def middle(state: list[Value], index: Value) -> list[Value]:
            start = b.op("add", begin, b.op("mul", index, block))

            def inner(state: list[Value], index: Value) -> list[Value]:
                return unless_done(state, b.op("add", start, index), step)

            return unless_done(state, start, lambda state: _repeated(b, block, state, inner))

        return unless_done(state, begin, lambda state: _repeated(b, block, state, middle))

    last = b.index(_BLOCK * _BLOCK - 1)
    n_outer = b.op("floordiv", b.op("add", n_steps, last), blocks)
    return _repeated(b, n_outer, first, outer)
