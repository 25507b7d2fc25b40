"""Random variables: loops of draws, in memory order.

Like PyTensor's Numba mode, the loops draw each element of a result with broadcast parameters of the
distribution. Each draw is one call of the C function behind NumPy's `Generator`, on the state of
the generator itself, so the numbers and the final state are the same.

A generator with other uses of its former state is copied, see `parts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.random import basic
from pytensor.tensor.random.op import RandomVariable

from pytensor_fuse._native.lowering.arrays.creation import dimensions
from pytensor_fuse._native.lowering.arrays.elementwise import broadcast_lengths
from pytensor_fuse._native.lowering.parts import own_generator
from pytensor_fuse._native.lowering.random.numbers import NUMBERS, number_of_pymc
from pytensor_fuse._native.lowering.random.vectors import VECTORS, Drawing
from pytensor_fuse._native.lowering.registry import dtypes_refusal, lower
from pytensor_fuse._native.lowering.tensors import DTYPES, NOTHING, Tensor, scalar
from pytensor_fuse._pytensor.compat.versions import scales_cauchy
from pytensor_fuse._pytensor.linking.python_nodes import draws_in_single

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.random.numbers import Number
    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value


def _refuses(op: RandomVariable, node: Node) -> str | None:
    if type(op) not in VECTORS and _number(op) is None:
        return f"no rule for random numbers of {type(op).__name__}"
    why = dtypes_refusal((node.outputs[1], *op.dist_params(node)))
    if why is not None:
        return why
    if draws_in_single(node):
        return f"{op.name} numbers that Numba draws in single precision"
    if isinstance(op, basic.MvNormalRV) and op.method != "cholesky":
        return f"normal vectors by {op.method}"
    if isinstance(op, basic.CauchyRV) and not scales_cauchy():
        return "Cauchy's distribution, for which this version of PyTensor has another formula"
    return None


@lower.register(RandomVariable, refuses=_refuses)
def _random_variable(op: RandomVariable, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    generator = own_generator(context, inputs[0], node.inputs[0], destroys=op.inplace)
    params = inputs[2:]
    n_axes = op.batch_ndim(node)
    broadcasts = [one.type.broadcastable[:n_axes] for one in op.dist_params(node)]
    shape = node.outputs[1].type.shape[:n_axes]
    lengths = _lengths(context, inputs[1], params, broadcasts, shape)
    [state] = generator.parts
    assert state.buffer is not None
    drawing = Drawing(
        context, state.buffer, lengths, params, broadcasts, DTYPES[node.outputs[1].type.dtype]
    )
    vectors = VECTORS.get(type(op))
    if vectors is not None:
        return [generator, vectors(drawing)]
    draw, source = _number(op), state.buffer
    assert draw is not None

    def number(index: Index) -> Value:
        return draw(builder, source, [drawing.at(place, index) for place in range(len(params))])

    return [generator, drawing.numbers(number)]


def _number(op: RandomVariable) -> Number | None:
    """Return the emitter of one draw of an op whose draws are scalars, or None."""
    return NUMBERS.get(type(op)) or number_of_pymc(op)


def _lengths(
    context: Context,
    size: Tensor,
    params: Sequence[Tensor],
    broadcasts: Sequence[tuple[bool, ...]],
    shape: Sequence[int | None],
) -> list[Value]:
    """Return the lengths of the batch of draws, without the axes of a single draw."""
    outer = [Tensor(one.dtype, one.lengths[: len(shape)], one.at) for one in params]
    if size is NOTHING:
        return broadcast_lengths(context, outer, broadcasts)
    builder = context.builder
    numbers = [scalar(builder, size.at((builder.index(axis),))) for axis, _ in enumerate(shape)]
    return broadcast_lengths(context, outer, broadcasts, dimensions(context, numbers, shape))
