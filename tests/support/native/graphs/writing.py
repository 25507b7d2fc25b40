"""Random PyTensor graphs of the ops that have rules, with values for their inputs.

A graph is built from a `Program`. Every program is valid, and so is every smaller one: a step is
four small integers, taken modulo the number of choices. The result of a step is computed at once,
so that later steps know its shape; a failing step is omitted, or ends the graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from hypothesis import strategies as st
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import io_toposort

from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.tensors import DTYPES
from support.native.evaluation import evaluate_nodes, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.basic import Variable

LENGTHS = (3, 4, 1, 2, 0, 5, 9, 17)
# Indices into the two lengths of a program; None stands for an axis of static length 1.
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
EXACT_DTYPES = (
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
SMOOTH_DTYPES = ("float64", "float64", "float64", "float32", "int64", "bool")
_MOST_ELEMENTS = 2000
_SPECIAL = (1.0, 0.0, -0.0, 2.0, -1.5, 0.5, np.nan, np.inf, -np.inf, 1e-310, 1e300, -3.0, 2.0**53)
# The bound of numbers in smooth graphs, so that rounding cannot grow into a visible difference.
_LARGEST = 50.0

Step = tuple[int, int, int, int]


@dataclass(frozen=True)
class Program:
    """A recipe for a graph.

    Attributes
    ----------
    inputs
        The types and contents of the inputs.
    steps
        The computations.
    outputs
        The returned results, from the last one backwards.
    lengths
        The two lengths of axes.
    is_smooth
        Whether the graph has mathematical functions and sums that round, and no jumps; otherwise,
        all of it is exact.
    may_fail
        Whether the graph ends with the first failing step.
    """

    inputs: tuple[int, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...] = ()
    lengths: tuple[int, int] = (0, 1)
    is_smooth: bool = False
    may_fail: bool = False


@dataclass
class Case:
    """A graph, values for its inputs, and the outcome.

    Attributes
    ----------
    inputs, outputs
        The graph.
    values
        Values of the inputs.
    expected
        Values of the outputs.
    failure
        The exception of the computation.
    """

    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    expected: list[np.ndarray] = field(default_factory=list)
    failure: Exception | None = None

    def copies(self) -> list[Any]:
        """Return copies of the values, to be overwritten."""
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
    """Return an array of numbers at which ops have been wrong, or of moderate numbers."""
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


class _Failed(Exception):  # noqa: N818  it ends the graph, and is no error
    pass


class Writer:
    """Builds a graph step by step."""

    def __init__(self, program: Program, steps: Sequence[Callable[..., Any]]) -> None:
        self.steps = steps
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
        dtypes = SMOOTH_DTYPES if self.smooth else EXACT_DTYPES
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
        """Return an integer, as a number or an input."""
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
        """Return one of the latest variables that satisfy a predicate, or None."""
        found = [one for one in reversed(self.pool) if keep is None or keep(one)]
        return found[number % len(found)] if found else None

    def array(self, number: int) -> Any:
        """Return a variable with axes, or None."""
        return self.recent(number, lambda one: one.type.ndim > 0)

    def fitting(self, variable: Variable, number: int) -> Any:
        """Return a variable that broadcasts with another, or any one if the graph may fail."""
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
        writes = self.steps[kind % len(self.steps)]
        n_inputs = len(self.built.inputs)
        try:
            made = writes(self, a, b, c)
        except (TypeError, NotImplementedError, ValueError, IndexError, AssertionError):
            # Such a step is invalid for all values.
            made = None
        except RuntimeWarning:
            # PyTensor divides by zero while it computes a length of an array without elements.
            made = None
        outs = made if isinstance(made, list | tuple) else [] if made is None else [made]
        kept = [self.keep(one) for one in outs]
        if not any(kept):
            for one in self.built.inputs[n_inputs:]:
                del self.values[one]
            del self.built.inputs[n_inputs:], self.built.values[n_inputs:]

    def keep(self, variable: Variable) -> bool:
        """Compute a variable and make it available to other steps, if it is useful."""
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
            # PyTensor 3.0's Python code casts 0-d arrays through Python's integers; others wrap.
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
