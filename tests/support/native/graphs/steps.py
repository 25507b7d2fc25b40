"""The steps of random PyTensor graphs, from an op each to a few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.raise_op import Assert

from support.native.graphs.writing import EXACT_DTYPES, SMOOTH_DTYPES, Case, Program, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.basic import Variable

try:
    from pytensor.conditional.op import ifelse
except ImportError:  # PyTensor 3.0
    from pytensor.ifelse import ifelse


class _Steps(Writer):
    """Writes the steps of a graph."""

    # Elementwise

    def unary(self, a: int, b: int, c: int) -> Any:
        x = self.recent(a)
        kind = x.type.dtype[0]
        if self.smooth:
            if kind != "f":
                return pt.cast(x, "float64") if b % 2 else -x
            return _SMOOTH_UNARY[b % len(_SMOOTH_UNARY)](x)
        return _UNARY[b % len(_UNARY)](x)

    def binary(self, a: int, b: int, c: int) -> Any:
        x = self.recent(a)
        y = self.fitting(x, b)
        if y is None:
            return None
        if self.smooth:
            return _SMOOTH_BINARY[c % len(_SMOOTH_BINARY)](as_float(x), as_float(y))
        return _BINARY[c % len(_BINARY)](x, y)

    def with_number(self, a: int, b: int, c: int) -> Any:
        x = self.recent(a)
        number = (2, 0.5, -1, 3, 1, 0)[b % 6]
        if self.smooth:
            return _SMOOTH_BINARY[c % 3](as_float(x), number)
        return _BINARY[c % len(_BINARY)](x, number)

    def cast(self, a: int, b: int, c: int) -> Any:
        x = self.recent(a)
        dtype = [*dict.fromkeys(SMOOTH_DTYPES if self.smooth else EXACT_DTYPES)]
        to = dtype[b % len(dtype)]
        if x.type.dtype[0] == "f" and to[0] != "f":
            if self.smooth:
                return None
            # Conversions of numbers out of range differ between implementations.
            x = pt.switch(pt.isnan(x), 0, pt.clip(x, 0 if to[0] == "u" else -100, 100))
        return pt.cast(x, to)

    def switch(self, a: int, b: int, c: int) -> Any:
        condition = self.recent(a, lambda one: one.type.dtype[0] != "f")
        x = None if condition is None else self.fitting(condition, b)
        y = None if x is None else self.fitting(x, c)
        return None if y is None else pt.switch(condition, x, y)

    # Along axes

    def axes(self, x: Variable, number: int) -> tuple[int, ...] | None:
        if number % 3 == 0:
            return None
        return tuple(axis for axis in range(x.type.ndim) if number >> (axis + 2) & 1) or (0,)

    def reduction(self, a: int, b: int, c: int) -> Any:
        x = self.array(a)
        if x is None:
            return None
        name = ("sum", "max", "min", "prod", "all", "any", "mean")[
            c % (6 if not self.smooth else 7)
        ]
        if name in ("all", "any"):
            return (
                None
                if self.smooth and x.type.dtype[0] == "f"
                else getattr(pt, name)(pt.neq(x, 0), axis=self.axes(x, b))
            )
        if name in ("max", "min") and 0 in self.shape(x):
            # NumPy refuses this, and Numba does not.
            return None
        if x.type.dtype[0] == "f" and not self.smooth:
            if name in ("sum", "prod"):
                # The result does not depend on the order.
                x = pt.sign(x) if name == "prod" else pt.clip(pt.round(x), -100, 100)
            else:
                x = without_negative_zeros(x)
                return without_negative_zeros(getattr(pt, name)(x, axis=self.axes(x, b)))
        return getattr(pt, name)(as_float(x) if self.smooth else x, axis=self.axes(x, b))

    def cumulative(self, a: int, b: int, c: int) -> Any:
        x = self.array(a)
        if x is None:
            return None
        if x.type.dtype[0] != "f":
            # For smaller integers, NumPy's result does not have the dtype that PyTensor declares.
            x = pt.cast(x, "int64")
        axis = b % x.type.ndim
        return pt.cumsum(x, axis=axis) if c % 2 else pt.cumprod(x, axis=axis)

    def argmax(self, a: int, b: int, c: int) -> Any:
        x = self.array(a)
        if x is None or 0 in self.shape(x) or (self.smooth and x.type.dtype[0] == "f"):
            return None
        return pt.argmax(x, axis=None if b % 3 == 0 else b % x.type.ndim)

    # Views

    def dimshuffle(self, a: int, b: int, c: int) -> Any:
        x = self.recent(a)
        order: list[Any] = [
            axis
            for axis in range(x.type.ndim)
            if not (x.type.broadcastable[axis] and b >> axis & 1)
        ]
        rng = np.random.default_rng(b)
        order = [order[place] for place in rng.permutation(len(order))]
        if c % 2 and len(order) < 3:
            order.insert(c // 2 % (len(order) + 1), "x")
        return x.dimshuffle(order)

    def slices(self, x: Variable, b: int, c: int) -> tuple[Any, ...]:
        out: list[Any] = []
        for axis, length in enumerate(self.shape(x)[: 1 + c % 3]):
            kind = (b >> 2 * axis) % 8
            low, high = (c + axis) % (length + 2), (b + c) % (length + 3)
            if kind == 0 and length:
                out.append(self.number(low % length - (b % 2) * length, c))
            elif kind in (1, 2):
                out.append(slice(None, None, (-1, 2, -2, 3)[b % 4]))
            elif kind == 3:
                out.append(slice(self.number(low, b), self.number(high, c)))
            elif kind == 4:
                out.append(slice(self.number(-low, b), None))
            elif kind == 5:
                out.append(slice(None, self.number(-1 - low, b), None))
            elif kind == 6 and self.program.may_fail:
                out.append(self.number(high, c))
            else:
                out.append(slice(1, None))
        return tuple(out)

    def subtensor(self, a: int, b: int, c: int) -> Any:
        x = self.array(a)
        return None if x is None else x[self.slices(x, b, c)]

    def indices(self, x: Variable, b: int, c: int) -> Any:
        shape = self.shape(x)
        kind = c % 7
        if kind < 3:
            return self.index(shape[0], b)
        if kind == 3:
            return self.index(shape[0], b, ndim=2)
        if kind == 4 and len(shape) > 1:
            return (self.index(shape[0], b), self.index(shape[1], b ^ 1))
        if kind == 5 and len(shape) > 1:
            return (slice(None), self.index(shape[1], b))
        mask = self.recent(b, lambda one: one.type.dtype == "bool" and one.type.ndim > 0)
        return self.index(shape[0], b) if mask is None else mask

    def gather(self, a: int, b: int, c: int) -> Any:
        x = self.array(a)
        return None if x is None else x[self.indices(x, b, c)]

    def write(self, a: int, b: int, c: int) -> Any:
        x = self.array(a)
        if x is None:
            return None
        part = x[self.slices(x, b, c // 2) if c % 2 else self.indices(x, b, c // 2)]
        dtype = x.type.dtype
        y = self.recent(b, lambda one: one.type.dtype == dtype and one.type.ndim <= part.type.ndim)
        if y is None or c % 3:
            y = pt.constant(np.array(1, dtype)) if c % 3 != 1 or y is None else y.sum(dtype=dtype)
            if dtype[0] == "f" and not self.smooth:
                y = pt.constant(np.array(1, dtype))
        writes = pt.inc_subtensor if b % 3 and dtype != "bool" else pt.set_subtensor
        return writes(part, y)

    # Shapes

    def join(self, a: int, b: int, c: int) -> Any:
        x = self.array(a)
        y = None if x is None else self.recent(b, lambda one: one.type.ndim == x.type.ndim)
        if y is None:
            return None
        if c % 3 == 0 and self.shape(x) == self.shape(y):
            return pt.stack([x, y, x][: 2 + c % 2], axis=c // 3 % (x.type.ndim + 1))
        return pt.join(c // 3 % x.type.ndim, *[x, y, x][: 2 + c % 2])

    def split(self, a: int, b: int, c: int) -> Any:
        x = self.array(a)
        if x is None:
            return None
        axis = b % x.type.ndim
        if self.program.may_fail and b % 8 == 5:
            # The second part would have a negative length, and so would arrays computed from it.
            sizes = [self.number(self.shape(x)[axis] + c, b // 8), self.number(-c, b // 16)]
            return pt.cumsum(pt.split(x, pt.as_tensor(sizes), 2, axis=axis)[1], axis=axis)
        first = c % (self.shape(x)[axis] + 1)
        rest = self.shape(x)[axis] - first
        wrong = self.program.may_fail and b % 8 == 3
        sizes = [self.number(first, b // 4), self.number(rest + wrong, c // 4)]
        return pt.split(x, pt.as_tensor(sizes), 2, axis=axis)

    def reshape(self, a: int, b: int, c: int) -> Any:
        x = self.recent(a)
        size = int(np.prod(self.shape(x)))
        if b % 4 == 0:
            return x.reshape((-1,))
        factors = [n for n in range(1, size + 1) if size % n == 0] or [0, 2]
        first = factors[c % len(factors)]
        second = size // first if first else 3
        second += self.program.may_fail and b % 8 == 3
        # NumPy cannot infer a length of an empty array, for which Numba returns 0.
        if b % 4 == 1 and first:
            return x.reshape((self.number(first, c), -1))
        return x.reshape((self.number(first, b // 4), self.number(second, c)))

    def lengths_of(self, a: int, b: int, c: int) -> Any:
        x = self.array(a)
        if x is None:
            return None
        axis = b % x.type.ndim
        kind = c % 4
        if kind == 0:
            return x.shape
        if kind == 1:
            return pt.arange(x.shape[axis])
        if kind == 2:
            expected = self.shape(x)[axis] + (self.program.may_fail and b % 8 == 3)
            return pt.specify_shape(
                x, [*[None] * axis, expected, *[None] * (x.type.ndim - axis - 1)]
            )
        return x.shape[axis]

    def fill(self, a: int, b: int, c: int) -> Any:
        x = self.recent(a, lambda one: one.type.ndim < 2)
        y = self.array(b)
        if x is None or y is None:
            return None
        if self.program.may_fail and b % 8 == 5:
            return pt.cumsum(pt.alloc(x, self.number(-c, b // 8), *x.shape), axis=0)
        lengths = [self.number((3, 2, 0, 1)[c % 4], c), y.shape[0]]
        if (x.type.ndim and self.shape(x)[0] == self.shape(y)[0]) or c % 2:
            return pt.alloc(x, *lengths)
        return pt.alloc(x, lengths[0], x.shape[0]) if x.type.ndim else pt.full_like(y, x)

    def vector(self, a: int, b: int, c: int) -> Any:
        x = self.recent(a, lambda one: one.type.ndim == 0)
        if x is None:
            return None
        others = [
            self.recent(n, lambda one: one.type.dtype == x.type.dtype and one.type.ndim == 0)
            for n in (b, c)
        ]
        return pt.stack([x, *others])

    def diagonal(self, a: int, b: int, c: int) -> Any:
        if c % 3 == 0:
            return pt.eye(self.number(b % 4, c), self.number(1 + a % 3, b), k=c % 3 - 1)
        x = self.array(a)
        return None if x is None or x.type.ndim > 2 else pt.diag(x, k=b % 3 - 1)

    # Control

    def choice(self, a: int, b: int, c: int) -> Any:
        condition = self.recent(a, lambda one: one.type.ndim == 0 and one.type.dtype[0] != "f")
        x = self.recent(b)
        if condition is None:
            condition = pt.gt(x.size, self.number(c % 5, c))
        others = (lambda: x + x, lambda: x * x, lambda: x[::-1] if x.type.ndim else -x)
        other = others[c % 3]()
        if other.type.dtype != x.type.dtype or other.type.shape != x.type.shape:
            return None
        return ifelse(condition, *([x, other] if c % 2 else [other, x]))

    def check(self, a: int, b: int, c: int) -> Any:
        x = self.recent(a)
        condition = self.recent(b, lambda one: one.type.dtype[0] != "f")
        if condition is None:
            return None
        condition = pt.all(condition) if condition.type.ndim else condition
        if not self.program.may_fail:
            condition = condition | True if condition.type.dtype == "bool" else pt.ge(x.size, 0)
        return Assert("what was asked")(x, condition)


def as_float(x: Any) -> Any:
    """Return a variable as floats: NumPy's functions of small integers have few digits."""
    return x if x.type.dtype[0] == "f" else pt.cast(x, "float64")


def without_negative_zeros(x: Any) -> Any:
    """Return a variable with negative zeros replaced by positive ones."""
    return pt.switch(pt.eq(x, 0), pt.zeros((), dtype=x.type.dtype), x)


def _extreme(op: Callable[..., Any]) -> Callable[..., Any]:
    # The order of the two zeros is unspecified.
    return lambda x, y: without_negative_zeros(op(without_negative_zeros(x), y))


def _whole(op: Callable[..., Any]) -> Callable[..., Any]:
    def of_numbers(x: Any, y: Any) -> Any:
        return None if "float" in f"{x.type.dtype}{getattr(y, 'dtype', type(y))}" else op(x, y)

    return of_numbers


_UNARY: Sequence[Callable[..., Any]] = (
    *(pt.neg, pt.abs, pt.sign, pt.sqr, pt.round, pt.floor, pt.ceil, pt.trunc, pt.isnan, pt.isinf),
    *(lambda x: ~x if x.type.dtype[0] != "f" else None, lambda x: pt.sqrt(pt.abs(as_float(x)))),
    *(lambda x: pt.clip(x, -1, 2), lambda x: 1 / as_float(x), pt.zeros_like),
)
_BINARY: Sequence[Callable[..., Any]] = (
    *(pt.add, pt.mul, pt.sub, pt.true_div, pt.lt, pt.le, pt.eq, pt.neq, pt.gt, pt.ge),
    *(_extreme(pt.maximum), _extreme(pt.minimum), pt.int_div, pt.mod),
    *(_whole(pt.and_), _whole(pt.or_), _whole(pt.xor), pt.second),
)
_SMOOTH_UNARY: Sequence[Callable[..., Any]] = (
    *(pt.sin, pt.cos, pt.tanh, pt.sigmoid, pt.neg, lambda x: pt.exp(pt.tanh(x)), pt.softplus),
    *(lambda x: pt.log1p(pt.sqr(x)), lambda x: pt.gammaln(pt.sqr(x) + 1), pt.erf, pt.arctan),
    *(lambda x: pt.sqrt(pt.sqr(x) + 1), lambda x: pt.log(pt.abs(x) + 0.5), pt.expm1, pt.abs),
    *(lambda x: pt.logsumexp(x) if x.type.ndim else pt.psi(pt.sqr(x) + 1),),
)
_SMOOTH_BINARY: Sequence[Callable[..., Any]] = (
    *(pt.add, pt.sub, pt.mul, lambda x, y: x / (pt.sqr(y) + 1), pt.maximum, pt.minimum),
    *(pt.add, lambda x, y: (pt.sqr(x) + 0.5) ** pt.tanh(y)),
)
_STEPS: Sequence[Callable[..., Any]] = (
    *(_Steps.unary, _Steps.binary, _Steps.reduction, _Steps.subtensor, _Steps.gather),
    *(_Steps.write, _Steps.dimshuffle, _Steps.with_number, _Steps.join, _Steps.reshape),
    *(_Steps.cumulative, _Steps.switch, _Steps.fill, _Steps.binary, _Steps.unary),
    *(_Steps.cast, _Steps.split, _Steps.argmax, _Steps.choice, _Steps.check),
    *(_Steps.lengths_of, _Steps.vector, _Steps.diagonal, _Steps.binary, _Steps.reduction),
)


def build(program: Program) -> Case:
    """Build the graph of a program."""
    return _Steps(program, _STEPS).case()
