"""Matrix exponential: Padé approximants, scaling and squaring.

The algorithm is that of PyTensor's Numba implementation [1]_, which chooses the approximant by the
1-norm. Nonfinite input gives NaN.

References
----------
.. [1] Al-Mohy, A. H. and Higham, N. J. (2009). A new scaling and squaring algorithm for the matrix
       exponential. SIAM J. Matrix Anal. Appl. 31(3), 970-989.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pytensor.tensor.linalg.products import Expm

from pytensor_fuse._native.lowering.matrices import operands
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor
from pytensor_fuse._native.program.model import Operand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytensor_fuse._native.lowering.types import BufferId, Context, Index, Node, Tensors, Value


def _coefficients(degree: int) -> list[float]:
    """Return the coefficients of the numerator of the approximant of a degree, in whole numbers."""
    factorial = math.factorial
    return [
        float(factorial(2 * degree - k) // (factorial(k) * factorial(degree - k)))
        for k in range(degree + 1)
    ]


# The largest norm for which each approximant is accurate to the precision of the dtype.
_LIMITS: Final = {
    "f64": {
        3: 1.495585217958292e-02,
        5: 2.539398330063230e-01,
        7: 9.504178996162932e-01,
        9: 2.097847961257068e00,
        13: 5.371920351148152,
    },
    "f32": {3: 4.258730016922831e-01, 5: 1.880152677804762e00, 7: 3.925724783138660},
}


@lower.register(Expm, refuses=operands.refuses_not_real)
def _expm(op: Expm, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder, dtype = context.builder, DTYPES[node.outputs[0].type.dtype]
    matrix = context.of_dtype(inputs[0], dtype)
    size = operands.require_square(context, matrix)
    work = _Work(context, dtype, size)
    norm = _norm(context, Tensor(dtype, (size, size), matrix.at))
    limits = _LIMITS[dtype]
    n_squarings, scale = _scaling(context, norm, max(limits.values()))
    context.fill(Operand(work.scaled), lambda index: builder.op("mul", matrix.at(index), scale))
    work.by_degree(list(limits.items()), builder.op("mul", norm, scale))
    found = context.array(dtype, [size, size], is_once=False)
    report = work.divide(found)
    with builder.loop(n_squarings):
        work.multiply(work.odd, found, found)
        context.fill(found, lambda index: builder.load(work.odd, index))
    is_finite = builder.op("lt", norm, builder.constant(dtype, math.inf))
    succeeded = builder.op("and", is_finite, operands.has_succeeded(context, report))
    context.fill_unless(succeeded, found)
    return [context.held(found)]


def _norm(context: Context, matrix: Tensor) -> Value:
    """Return the 1-norm; NaN if an element is NaN."""
    builder, [size, _] = context.builder, matrix.lengths
    zero = builder.constant(matrix.dtype, 0.0)
    with builder.loop(size) as columns:
        with builder.loop(size) as rows:
            element = builder.op("abs", matrix.at((rows.index, columns.index)))
            total = builder.reduce(rows, "add", zero, element)
        return builder.reduce(columns, "maximum", zero, total)


def _scaling(context: Context, norm: Value, limit: float) -> tuple[Value, Value]:
    """Return the number of halvings that bring a norm within a limit, and the scale factor."""
    builder, dtype = context.builder, context.builder.dtype(norm)
    one, half = builder.constant(dtype, 1.0), builder.constant(dtype, 0.5)
    is_large = builder.op("gt", norm, builder.constant(dtype, limit))
    is_finite = builder.op("lt", norm, builder.constant(dtype, math.inf))
    ratio = builder.op("div", norm, builder.constant(dtype, limit))
    needed = builder.cast(builder.op("ceil", builder.op("log2", ratio)), "i64")
    is_scaled = builder.op("and", is_large, is_finite)
    n_halvings = builder.op("select", is_scaled, needed, builder.index(0))
    with builder.loop(n_halvings) as loop:
        scale = builder.carried(dtype)
        out = builder.carry(loop, scale, one, builder.op("mul", scale, half))
    return n_halvings, out


class _Work:
    """The matrices of one exponential.

    Attributes
    ----------
    scaled
        The argument of the approximant.
    odd, even
        The odd and the even part of its numerator.
    """

    def __init__(self, context: Context, dtype: str, size: Value) -> None:
        self._context = context
        self._dtype = dtype
        self._size = size
        self.scaled = self._matrix()
        self.odd, self.even = self._matrix(), self._matrix()
        self._sum = self._matrix()
        self._powers = {power: self._matrix() for power in (2, 4, 6, 8)}

    def _matrix(self) -> BufferId:
        lengths = (self._size, self._size)
        return self._context.temporary(self._dtype, lengths, is_once=False)

    def multiply(
        self, out: BufferId | Operand, left: BufferId | Operand, right: BufferId | Operand
    ) -> None:
        """Store the product of two matrices to a third one."""
        sizes = operands.sizes_of(self._context, [self._size] * 3)
        self._context.builder.call("matmul_nn", sizes, [out, left, right])

    def _polynomial(
        self, out: BufferId, coefficients: Mapping[int, float], *others: BufferId
    ) -> None:
        """Store a polynomial of even powers of the matrix, plus other matrices."""
        builder, dtype = self._context.builder, self._dtype
        none = builder.constant(dtype, 0.0)

        def at(index: Index) -> Value:
            total = None
            for power, coefficient in coefficients.items():
                factor = builder.constant(dtype, coefficient)
                if power:
                    term = builder.op("mul", factor, builder.load(self._powers[power], index))
                else:
                    term = builder.op("select", builder.op("eq", *index), factor, none)
                total = term if total is None else builder.op("add", total, term)
            for other in others:
                term = builder.load(other, index)
                total = term if total is None else builder.op("add", total, term)
            assert total is not None
            return total

        self._context.fill(Operand(out), at)

    def by_degree(self, limits: Sequence[tuple[int, float]], norm: Value) -> None:
        """Emit the parts of the approximant, with a branch on the norm for its degree."""
        (degree, limit), *others = limits
        if not others:
            self._parts(degree)
            return
        builder = self._context.builder
        is_near = builder.op("le", norm, builder.constant(self._dtype, limit))
        self._context.branch(
            is_near, lambda: self._parts(degree), lambda: self.by_degree(others, norm)
        )

    def _parts(self, degree: int) -> None:
        powers = self._powers
        self.multiply(powers[2], self.scaled, self.scaled)
        for power in range(4, degree if degree < 13 else 8, 2):
            self.multiply(powers[power], powers[power - 2], powers[2])
        numbers = _coefficients(degree)
        highest = 6 if degree == 13 else degree - 1
        odd = {power: numbers[power + 1] for power in range(highest, -1, -2)}
        even = {power: numbers[power] for power in range(highest, -1, -2)}
        if degree < 13:
            self._polynomial(self._sum, odd)
            self._polynomial(self.even, even)
        else:
            # The powers from 8 on are computed as multiples of the sixth.
            for part, low, shift in ((self._sum, odd, 7), (self.even, even, 6)):
                high = {power: numbers[power + shift] for power in (6, 4, 2)}
                self._polynomial(self.odd, high)
                self.multiply(part, powers[6], self.odd)
                self._polynomial(part, low, part)
        self.multiply(self.odd, self.scaled, self._sum)

    def divide(self, found: Operand) -> Value:
        """Store the approximant, and return LAPACK's status.

        Left and right quotients of the parts agree, because polynomials of one matrix commute.
        """
        context, builder = self._context, self._context.builder
        context.fill(
            found,
            lambda index: builder.op(
                "add", builder.load(self.odd, index), builder.load(self.even, index)
            ),
        )
        denominator = self.even
        context.fill(
            Operand(denominator),
            lambda index: builder.op(
                "sub", builder.load(denominator, index), builder.load(self.odd, index)
            ),
        )
        [size] = operands.sizes_of(context, [self._size])
        pivots = context.temporary("i32", [self._size], is_once=False)
        report = builder.call("getrf", [size], [denominator, pivots])
        builder.call("getrs", [size, size], [found, denominator, pivots])
        return report
