"""Random variables: loops of draws, in the order of memory.

A draw for each element of a result, with the parameters of a distribution broadcast against each
other, is what PyTensor's Numba mode does. Each is one call of the function of NumPy that its
`Generator` calls, on the generator itself, so numbers and the state that is left are the same.

An op that does not change the generator that it is given draws from a copy of it, which is made
before the call: so it must be an argument of the function, as it was when the call began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.tensor.random import basic
from pytensor.tensor.random.op import RandomVariable

from pytensor_fuse._native.lowering.elementwise import broadcast_lengths
from pytensor_fuse._native.lowering.parts import copy_of_argument
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.tensors import DTYPES, NOTHING, Tensor, scalar, stored
from pytensor_fuse._native.program.draws import DRAWS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.basic import Apply

    from pytensor_fuse._native.lowering.context import Context
    from pytensor_fuse._native.lowering.tensors import Index
    from pytensor_fuse._native.program.builder import Builder
    from pytensor_fuse._native.program.model import BufferId, Value

    Core = Callable[[Builder, BufferId, Sequence[Value]], Value]


def _draws(name: str) -> Core:
    """Return what draws one number from a distribution whose parameters are a node's."""
    takes = DRAWS[name].takes

    def core(builder: Builder, generator: BufferId, params: Sequence[Value]) -> Value:
        given = [builder.cast(one, dtype) for one, dtype in zip(params, takes, strict=True)]
        return builder.draw(name, generator, given)

    return core


def _uniform(builder: Builder, generator: BufferId, params: Sequence[Value]) -> Value:
    low, high = [builder.cast(one, "f64") for one in params]
    return builder.draw("uniform", generator, [low, builder.op("sub", high, low)])


# What draws one number of an op without axes of its own.
_CORES: Final[dict[type, Core]] = {
    basic.NormalRV: _draws("normal"),
    basic.UniformRV: _uniform,
}


def _refuses(op: RandomVariable, node: Apply[Any]) -> str | None:
    if type(op) not in _CORES:
        return f"random numbers of {type(op).__name__}"
    for variable in (*op.dist_params(node), node.outputs[1]):
        if variable.type.dtype not in DTYPES:
            return f"no dtype {variable.type.dtype}"
    return None


@lower.register(RandomVariable, refuses=_refuses)
def _random_variable(
    op: RandomVariable, node: Apply[Any], context: Context, inputs: list[Tensor]
) -> list[Tensor]:
    builder = context.builder
    generator = _drawn_from(op, node, context, inputs[0])
    [state] = generator.parts
    assert state.buffer is not None
    source = state.buffer
    params = inputs[2:]
    n_axes = op.batch_ndim(node)
    broadcasts = [one.type.broadcastable[:n_axes] for one in op.dist_params(node)]
    lengths = _lengths(context, inputs[1], params, broadcasts, n_axes)
    core = _CORES[type(op)]
    dtype = DTYPES[node.outputs[1].type.dtype]
    zero = builder.index(0)

    def element(index: Index) -> Value:
        args = [
            one.at(tuple([zero if is_one else at for at, is_one in zip(index, axes, strict=True)]))
            for one, axes in zip(params, broadcasts, strict=True)
        ]
        return builder.cast(core(builder, source, args), dtype)

    if not lengths:
        return [generator, scalar(builder, element(()))]
    buffer = context.temporary(dtype, lengths)
    in_order(builder, lengths, lambda index: builder.store(buffer, index, element(index)))
    return [generator, stored(builder, buffer)]


def _drawn_from(op: RandomVariable, node: Apply[Any], context: Context, given: Tensor) -> Tensor:
    """Return the generator that an op changes: the given one, or a copy of it."""
    [state] = given.parts
    if not op.inplace or state.buffer not in context.overwritable:
        given = copy_of_argument(context, given, node.inputs[0].type)
        [state] = given.parts
    assert state.buffer is not None
    context.overwritten.add(state.buffer)
    return given


def _lengths(
    context: Context,
    size: Tensor,
    params: Sequence[Tensor],
    broadcasts: Sequence[tuple[bool, ...]],
    n_axes: int,
) -> list[Value]:
    """Return the lengths of what is drawn, with what each draw has of its own left out."""
    outer = [Tensor(one.dtype, one.lengths[:n_axes], one.at) for one in params]
    if size is NOTHING:
        return broadcast_lengths(context, outer, list(broadcasts))
    builder = context.builder
    asked = [builder.cast(size.at((builder.index(axis),)), "i64") for axis in range(n_axes)]
    # The size is what the others must equal, as if it were one of them.
    first = Tensor("i64", asked, size.at)
    return broadcast_lengths(context, [first, *outer], [(False,) * n_axes, *broadcasts])


def in_order(builder: Builder, lengths: Sequence[Value], body: Callable[[Index], None]) -> None:
    """Run a body for each index into an array, in the order of memory."""

    def run(index: Index) -> None:
        if len(index) == len(lengths):
            body(index)
            return
        with builder.loop(lengths[len(index)]) as loop:
            run((*index, loop.index))

    run(())
