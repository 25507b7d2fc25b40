"""Random PyTensor graphs of the ops that have rules, with values for their inputs.

A graph is written from a `Program`, of which every one is valid, and every smaller one as well: a
step is four small integers, taken modulo the number of choices there are. What a step gives is
computed at once, so that later ones know its shape; a step that fails is left out, or ends the
graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from hypothesis import strategies as st
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import io_toposort
from pytensor.raise_op import Assert

from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.tensors import DTYPES
from support.native.evaluation import evaluate_nodes, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.basic import Variable

try:
    from pytensor.conditional.op import ifelse
except ImportError:  # PyTensor 3.0
    from pytensor.ifelse import ifelse

LENGTHS = (3, 4, 1, 2, 0, 5, 9, 17)
# Of the two lengths of a program; None stands for an axis that is known to have length 1.
_AXES: tuple[tuple[int | None, ...], ...] = (
    *(
        (0,),
        (0, 1),
        (),
        (1,),
        (1, 0),
        (None, 1),
        (0, None),
        (0, 0),
        (0, 1, 0),
        (None,),
        (1, None, 0),
    ),
)
_EXACT_DTYPES = (
    "float64",
    "float64",
    "int64",
    "float32",
    "bool",
    "int32",
    "uint8",
    "int8",
    "uint64",
)
_SMOOTH_DTYPES = ("float64", "float64", "float64", "float32", "int64", "bool")
_MOST_ELEMENTS = 2000
_SPECIAL = (1.0, 0.0, -0.0, 2.0, -1.5, 0.5, np.nan, np.inf, -np.inf, 1e-310, 1e300, -3.0, 2.0**53)
# Numbers stay below this in smooth graphs, so that rounding cannot grow into a visible difference.
_LARGEST = 50.0

Step = tuple[int, int, int, int]


@dataclass(frozen=True)
class Program:
    """A recipe for a graph.

    Attributes
    ----------
    inputs
        Which types and contents the inputs have.
    steps
        What is computed.
    outputs
        Which results are returned, from the last one on.
    lengths
        Which two lengths axes have.
    is_smooth
        Whether the graph has mathematical functions and sums that round, and no jumps; else, all of
        it is exact.
    may_fail
        Whether the graph ends with the first step that fails.
    """

    inputs: tuple[int, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...] = ()
    lengths: tuple[int, int] = (0, 1)
    is_smooth: bool = False
    may_fail: bool = False


@dataclass
class Case:
    """A graph, values for its inputs, and what comes of them.

    Attributes
    ----------
    inputs, outputs
        The graph.
    values
        Values for the inputs.
    expected
        Those of the outputs.
    failure
        What computing them raises.
    """

    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    expected: list[np.ndarray] = field(default_factory=list)
    failure: Exception | None = None

    def copies(self) -> list[Any]:
        """Return the values, to be overwritten."""
        return [one.copy() for one in self.values]


@st.composite
def programs(
    draw: Any, *, most_steps: int = 20, is_smooth: bool = False, may_fail: bool = True
) -> Program:
    """Draw a program."""
    number = st.integers(0, 255)
    return Program(
        inputs=tuple(draw(st.lists(number, min_size=1, max_size=5))),
        steps=tuple(draw(st.lists(st.tuples(*[number] * 4), min_size=1, max_size=most_steps))),
        outputs=tuple(draw(st.lists(number, max_size=4))),
        lengths=draw(st.tuples(*[st.integers(0, len(LENGTHS) - 1)] * 2)),
        is_smooth=is_smooth,
        may_fail=may_fail and draw(st.integers(0, 3)) == 3,
    )


def contents(dtype: str, shape: tuple[int, ...], seed: int, *, is_smooth: bool) -> np.ndarray:
    """Return an array of numbers at which ops have been wrong, or of moderate ones."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape), dtype=bool)
    if dtype.startswith("float"):
        if is_smooth:
            return np.asarray(rng.uniform(-2, 2, shape), dtype=dtype)
        with np.errstate(all="ignore"):
            special = np.array(_SPECIAL).astype(dtype)
        return np.asarray(rng.choice(special, shape), dtype=dtype)
    about = np.iinfo(dtype)
    least = 0 if about.min == 0 else -4
    numbers = list(range(least, 6))
    if not is_smooth:
        numbers += [about.max, about.max - 1, about.min]
    return np.asarray(rng.choice(np.array(numbers, dtype), shape), dtype=dtype)


def build(program: Program) -> Case:
    """Write the graph of a program."""
    return _Writer(program).case()


class _Failed(Exception):  # noqa: N818  it ends the graph, and is no error
    pass


class _Writer:
    """Writes a graph step by step."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.smooth = program.is_smooth
        self.lengths = tuple(LENGTHS[one % len(LENGTHS)] for one in program.lengths)
        self.built = Case()
        self.values: dict[Variable, Any] = {}
        self.pool: list[Variable] = []
        self.failing: Variable | None = None

    def case(self) -> Case:
        for number in self.program.inputs:
            self.input(number)
        for step in self.program.steps:
            try:
                self.step(*step)
            except _Failed:
                break
        built, pool = self.built, self.pool
        chosen = [pool[-1 - number % len(pool)] for number in self.program.outputs]
        built.outputs = [*chosen, pool[-1] if self.failing is None else self.failing]
        if self.failing is None:
            built.expected = [np.array(value_of(one, self.values)) for one in built.outputs]
        return built

    # Values

    def input(self, number: int) -> None:
        dtypes = _SMOOTH_DTYPES if self.smooth else _EXACT_DTYPES
        rest, kind = divmod(number, len(dtypes))
        axes = _AXES[rest % len(_AXES)]
        shape = tuple(1 if axis is None else self.lengths[axis] for axis in axes)
        known = tuple(
            1 if axis is None else length if number >> (place + 1) & 1 else None
            for place, (axis, length) in enumerate(zip(axes, shape, strict=True))
        )
        value = contents(dtypes[kind], shape, number, is_smooth=self.smooth)
        self.pool.append(self.given(value, known))

    def given(self, value: np.ndarray, known: tuple[int | None, ...] | None = None) -> Variable:
        """Return a new input."""
        known = (None,) * value.ndim if known is None else known
        variable = pt.tensor(f"i{len(self.built.inputs)}", dtype=str(value.dtype), shape=known)
        self.built.inputs.append(variable)
        self.built.values.append(value)
        self.values[variable] = value
        return variable

    def number(self, number: int, choice: int) -> Any:
        """Return an integer: as such, or as an input."""
        return number if choice % 3 else self.given(np.array(number, "int64"))

    def index(self, length: int, seed: int, ndim: int = 1) -> Any:
        """Return an array of indices, a constant or an input."""
        rng = np.random.default_rng(seed)
        shape = ((4, 1, 0, 7)[seed // 2 % 4], 2)[:ndim]
        beyond = self.program.may_fail and seed % 16 == 7
        value = rng.integers(-length, max(length, 1) + beyond, shape)
        if seed % 5 == 3 and length < 100:
            value = value.astype("int8")
        return self.given(value) if seed % 2 else pt.constant(value)

    def shape(self, variable: Variable) -> tuple[int, ...]:
        return np.shape(value_of(variable, self.values))

    def recent(self, number: int, keep: Callable[[Any], bool] | None = None) -> Any:
        """Return one of the latest variables that may be kept, or None."""
        found = [one for one in reversed(self.pool) if keep is None or keep(one)]
        return found[number % len(found)] if found else None

    def array(self, number: int) -> Any:
        """Return a variable with axes, or None."""
        return self.recent(number, lambda one: one.type.ndim > 0)

    def fitting(self, variable: Variable, number: int) -> Any:
        """Return a variable that broadcasts with another; of a graph that may fail, any."""
        if self.program.may_fail and number % 16 == 7:
            return self.recent(number)
        ours = self.shape(variable)

        def fits(other: Variable) -> bool:
            theirs = self.shape(other)
            for place in range(1, min(len(ours), len(theirs)) + 1):
                one, two = ours[-place], theirs[-place]
                bit_one, bit_two = (
                    variable.type.broadcastable[-place],
                    other.type.broadcastable[-place],
                )
                if one != two and not (bit_one or bit_two):
                    return False
            return True

        return self.recent(number, fits)

    # Steps

    def step(self, kind: int, a: int, b: int, c: int) -> None:
        writes = _STEPS[kind % len(_STEPS)]
        n_inputs = len(self.built.inputs)
        try:
            made = writes(self, a, b, c)
        except (TypeError, NotImplementedError, ValueError, IndexError, AssertionError):
            # What is wrong whatever the values are.
            made = None
        except RuntimeWarning:
            # PyTensor divides by zero where it works out a length of an array without elements.
            made = None
        outs = made if isinstance(made, list | tuple) else [] if made is None else [made]
        kept = [self.keep(one) for one in outs]
        if not any(kept):
            for one in self.built.inputs[n_inputs:]:
                del self.values[one]
            del self.built.inputs[n_inputs:], self.built.values[n_inputs:]

    def keep(self, variable: Variable) -> bool:
        """Compute a variable and let other steps have it, if it is of use."""
        if variable in self.values or isinstance(variable, Constant):
            return True
        nodes = [
            node
            for node in io_toposort([*self.values], [variable])
            if node.outputs[0] not in self.values
        ]
        for node in nodes:
            dtypes = [getattr(one.type, "dtype", "bool") for one in (*node.inputs, *node.outputs)]
            if not all(dtype in DTYPES for dtype in dtypes) or lower.refusal(node) is not None:
                return False
        values = dict(self.values)
        try:
            evaluate_nodes(nodes, values)
        except OverflowError:
            # PyTensor 3.0's Python code casts 0-d arrays by way of Python's integers; others wrap.
            return False
        except Exception as error:
            if not self.program.may_fail:
                return False
            self.built.failure, self.failing = error, variable
            raise _Failed from error
        value = np.asarray(values[variable])
        if value.size > _MOST_ELEMENTS:
            return False
        if self.smooth and value.dtype.kind != "b" and value.size:
            with np.errstate(all="ignore"):
                if not np.abs(value.astype("float64")).max() < _LARGEST:
                    return False
        self.values = values
        self.pool.append(variable)
        return True

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
        dtype = [*dict.fromkeys(_SMOOTH_DTYPES if self.smooth else _EXACT_DTYPES)]
        to = dtype[b % len(dtype)]
        if x.type.dtype[0] == "f" and to[0] != "f":
            if self.smooth:
                return None
            # What does not fit is not the same number everywhere.
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
            # NumPy refuses that, Numba does not.
            return None
        if x.type.dtype[0] == "f" and not self.smooth:
            if name in ("sum", "prod"):
                # In whatever order they are taken, the result is the same.
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
            # NumPy's result is not of the dtype that PyTensor says, of smaller integers.
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
            # The second part would be of a negative length, and what is made of it as well.
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
        # What is left of nothing is an error of NumPy's, and 0 for Numba.
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
    """Return a variable as floats: NumPy has few digits of functions of small integers."""
    return x if x.type.dtype[0] == "f" else pt.cast(x, "float64")


def without_negative_zeros(x: Any) -> Any:
    """Return what a variable is, with zeros that are all the same."""
    return pt.switch(pt.eq(x, 0), pt.zeros((), dtype=x.type.dtype), x)


def _extreme(op: Callable[..., Any]) -> Callable[..., Any]:
    # Which zero is the larger is not said.
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
    *(_Writer.unary, _Writer.binary, _Writer.reduction, _Writer.subtensor, _Writer.gather),
    *(_Writer.write, _Writer.dimshuffle, _Writer.with_number, _Writer.join, _Writer.reshape),
    *(_Writer.cumulative, _Writer.switch, _Writer.fill, _Writer.binary, _Writer.unary),
    *(_Writer.cast, _Writer.split, _Writer.argmax, _Writer.choice, _Writer.check),
    *(_Writer.lengths_of, _Writer.vector, _Writer.diagonal, _Writer.binary, _Writer.reduction),
)
