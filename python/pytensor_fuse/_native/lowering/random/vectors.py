"""Random variables whose parameters or draws are vectors.

The numbers of a vector are drawn consecutively, and so are the vectors of a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytensor.tensor.random import basic

from pytensor_fuse._native.lowering.batches import Batch, for_each
from pytensor_fuse._native.lowering.random.numbers import DOMAIN
from pytensor_fuse._native.lowering.systems.triangles import cholesky_factor
from pytensor_fuse._native.lowering.tensors import Tensor, scalar, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.lowering.types import BufferId, Context, Index, Value

    Vectors = Callable[["Drawing"], Tensor]

_SIZES: Final = "a mean of {0} elements and a covariance of {1} rows"


class Drawing(NamedTuple):
    """The draws of a node.

    Attributes
    ----------
    context
        The lowering.
    generator
        The buffer of the generator's state.
    lengths
        The lengths of the batch.
    params
        The parameters of the distribution.
    broadcasts
        For each parameter and batch axis, whether its only element is broadcast.
    dtype
        The dtype of the result.
    """

    context: Context
    generator: BufferId
    lengths: Sequence[Value]
    params: Sequence[Tensor]
    broadcasts: Sequence[tuple[bool, ...]]
    dtype: str

    def at(self, number: int, index: Index, *inner: Value) -> Value:
        """Return an element of a parameter, at an index of the batch and one within a member."""
        zero = self.context.builder.index(0)
        place = [
            zero if is_one else at
            for at, is_one in zip(index, self.broadcasts[number], strict=True)
        ]
        return self.params[number].at((*place, *inner))

    def floats(self, number: int, index: Index, *inner: Value) -> Value:
        """Return an element of a parameter as a double."""
        return self.context.builder.cast(self.at(number, index, *inner), "f64")

    def numbers(self, number: Callable[[Index], Value]) -> Tensor:
        """Return an array with one number for each member of the batch."""
        context, builder = self.context, self.context.builder
        if not self.lengths:
            return scalar(builder, builder.cast(number(()), self.dtype))
        buffer = context.temporary(self.dtype, self.lengths)

        def store(index: Index) -> None:
            builder.store(buffer, index, builder.cast(number(index), self.dtype))

        context.nest(self.lengths, store, unrolls=False)
        return stored(builder, buffer)


def _categorical(drawing: Drawing) -> Tensor:
    b, dtype = drawing.context.builder, drawing.params[0].dtype
    n = drawing.params[0].lengths[-1]

    def number(index: Index) -> Value:
        drawn = b.draw("standard_uniform", drawing.generator, [])
        with b.loop(n) as loop:
            total, place = b.carried(dtype), b.carried("i64")
            so_far = b.op("add", total, drawing.at(0, index, loop.index))
            is_below = b.op("lt", b.cast(so_far, "f64"), drawn)
            loop.until = b.op("not", is_below)
            after = b.op("add", loop.index, b.cast(is_below, "i64"))
            b.carry(loop, total, b.constant(dtype, -0.0), so_far)
            return b.carry(loop, place, b.index(0), after)

    return drawing.numbers(number)


def _dirichlet(drawing: Drawing) -> Tensor:
    context, b = drawing.context, drawing.context.builder
    n, one = drawing.params[0].lengths[-1], b.constant("f64", 1)
    dtype, lengths = drawing.dtype, [*drawing.lengths, n]
    gammas, out = context.temporary(dtype, lengths), context.temporary(dtype, lengths)

    def vector(index: Index) -> None:
        with b.loop(n) as loop:
            alpha = drawing.floats(0, index, loop.index)
            drawn = b.cast(b.draw("gamma", drawing.generator, [alpha, one]), dtype)
            b.store(gammas, (*index, loop.index), drawn)
            so_far = b.carried(dtype)
            initial = b.constant(dtype, 0)
            total = b.carry(loop, so_far, initial, b.op("add", so_far, drawn))
        with b.loop(n) as loop:
            place = (*index, loop.index)
            b.store(out, place, b.op("div", b.load(gammas, place), total))

    context.nest(drawing.lengths, vector, unrolls=False)
    return stored(b, out)


def _multinomial(drawing: Drawing) -> Tensor:
    context, b = drawing.context, drawing.context.builder
    n_categories = drawing.params[1].lengths[-1]
    zero, one = b.index(0), b.index(1)
    last = b.op("sub", n_categories, one)
    lengths = [*drawing.lengths, n_categories]
    out = context.filled(drawing.dtype, lengths)

    def vector(index: Index) -> None:
        n = b.cast(drawing.at(0, index), "i64")
        with b.loop(last) as loop:
            left, share = b.carried("i64"), b.carried("f64")
            p = drawing.floats(1, index, loop.index)
            drawn = b.draw("binomial", drawing.generator, [b.op("div", p, share), left])
            b.store(out, (*index, loop.index), b.cast(drawn, drawing.dtype))
            after = b.op("sub", left, drawn)
            loop.until = b.op("le", after, zero)
            n_left = b.carry(loop, left, n, after)
            b.carry(loop, share, b.constant("f64", 1), b.op("sub", share, p))
        is_left = b.op("and", b.op("gt", n_left, zero), b.op("ge", last, zero))
        rest = b.cast(n_left, drawing.dtype)
        context.branch(is_left, lambda: b.store(out, (*index, last), rest, is_guarded=True))

    context.nest(drawing.lengths, vector, unrolls=False)
    return stored(b, out)


def _beta_binomial(drawing: Drawing) -> Tensor:
    # All probabilities are drawn before the first count, as by SciPy.
    b = drawing.context.builder
    zero = b.constant("f64", 0)

    def probability(index: Index) -> Value:
        shapes = [drawing.floats(number, index) for number in (1, 2)]
        is_valid = b.op("ge", b.cast(drawing.at(0, index), "i64"), b.index(0))
        for one in shapes:
            is_valid = b.op("and", is_valid, b.op("gt", one, zero))
        b.check(is_valid, ValueError, DOMAIN.format(name="betabinom"))
        return b.draw("beta", drawing.generator, shapes)

    probabilities = drawing._replace(dtype="f64").numbers(probability)

    def count(index: Index) -> Value:
        n = b.cast(drawing.at(0, index), "i64")
        return b.draw("binomial", drawing.generator, [probabilities.at(index), n])

    return drawing.numbers(count)


def _mv_normal(drawing: Drawing) -> Tensor:
    context, b = drawing.context, drawing.context.builder
    mean, covariance = drawing.params
    size = context.require_equal(mean.lengths[-1], covariance.lengths[-1], ValueError, _SIZES)
    # All vectors with the same covariance share one factor.
    are_one = drawing.broadcasts[1]
    own = [
        b.index(1) if is_one else length
        for length, is_one in zip(drawing.lengths, are_one, strict=True)
    ]
    [factors] = for_each(
        context,
        own,
        [Batch(covariance, are_one)],
        lambda given: [cholesky_factor(context, given[0], lower=True)],
    )
    drawing = drawing._replace(params=[mean, factors])
    lengths = [*drawing.lengths, size]
    normals = context.temporary("f64", lengths)

    def draw(index: Index) -> None:
        b.store(normals, index, b.draw("standard_normal", drawing.generator, []))

    context.nest(lengths, draw, unrolls=False)

    def element(index: Index) -> Value:
        *place, row = index
        with b.loop(size) as loop:
            factor = drawing.floats(1, tuple(place), row, loop.index)
            term = b.op("mul", factor, b.load(normals, (*place, loop.index)))
            total = b.reduce(loop, "add", b.constant("f64", 0), term)
        return b.cast(b.op("add", total, drawing.floats(0, tuple(place), row)), drawing.dtype)

    return context.materialized(drawing.dtype, lengths, element)


VECTORS: Final[dict[type, Vectors]] = {
    basic.CategoricalRV: _categorical,
    basic.DirichletRV: _dirichlet,
    basic.MultinomialRV: _multinomial,
    basic.MvNormalRV: _mv_normal,
    basic.BetaBinomialRV: _beta_binomial,
}
