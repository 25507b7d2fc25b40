"""Random loop programs with inputs.

The operations have exact results, so that all ways to run programs must agree in each bit, except
for the bits of NaN.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from pytensor_fuse._native.program.arithmetic import NUMPY_DTYPES
from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.model import Allocate, Result
from pytensor_fuse._native.program.operations import (
    FLOATS,
    OPERATIONS,
    UNSIGNED,
)
from support.native.dtypes import DTYPES, OPERATIONS_OF, numbers_of, same_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.program.model import BufferId, Value


# The axes of arrays, by the index of their length.
AXES = ((), (0,), (1,), (0, 1), (1, 0), (0, 0))


class Array(NamedTuple):
    """A buffer that may be read."""

    buffer: BufferId
    axes: tuple[int, ...]
    # A check establishes that its lengths are those of the axes.
    is_checked: bool = False


class Writer:
    """Draws a program: its arrays, values and loops; the nests are those of a subclass."""

    def __init__(self, draw: Callable[..., Any], builder: Builder, longest: int) -> None:
        self.draw = draw
        self.b = builder
        self.numbers = [draw(st.integers(0, longest)) for _ in range(2)]
        self.lengths: tuple[Value, ...] = ()
        self.inputs: list[np.ndarray] = []
        self.constants: list[np.ndarray] = []
        self.arrays: list[Array] = []
        self.generators: dict[int, BufferId] = {}

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[self.draw(st.integers(0, len(choices) - 1))]

    def flag(self) -> bool:
        return self.draw(st.booleans())

    # Buffers

    def contents(self, dtype: str, axes: tuple[int, ...]) -> np.ndarray:
        shape = tuple(self.numbers[axis] for axis in axes)
        size = int(np.prod(shape, dtype=np.int64))
        drawn = min(size, 48)
        pool = numbers_of(dtype)
        picked = [
            pool[byte % len(pool)] for byte in self.draw(st.binary(min_size=drawn, max_size=drawn))
        ]
        return np.resize(np.array(picked, NUMPY_DTYPES[dtype]), shape)

    def given(self, dtype: str, axes: tuple[int, ...]) -> Array:
        """Add an input, whose lengths may be known only when the program runs."""
        array = self.contents(dtype, axes)
        shape = [self.numbers[axis] if self.flag() else None for axis in axes]
        buffer = self.b.given("input", len(self.inputs), dtype, shape)
        self.inputs.append(array)
        about = self.b.program.buffers[buffer]
        if not self.lengths:
            self.lengths = about.lengths
        is_checked = False
        for length, axis in zip(about.lengths, axes, strict=True):
            if length != self.lengths[axis]:
                condition = self.b.op("eq", length, self.lengths[axis])
                self.b.check(condition, ValueError, "{0} is not {1}", length, self.lengths[axis])
                is_checked = True
        return self.add(buffer, axes, is_checked=is_checked)

    def constant(self) -> None:
        axes, dtype = self.one_of(AXES), self.one_of(DTYPES)
        array = self.contents(dtype, axes)
        buffer = self.b.given("constant", len(self.constants), dtype, array.shape)
        self.constants.append(array)
        # In this example, its lengths are those of the axes.
        for length, axis in zip(self.b.program.buffers[buffer].lengths, axes, strict=True):
            condition = self.b.op("eq", length, self.lengths[axis])
            self.b.check(condition, ValueError, "{0} is not {1}", length, self.lengths[axis])
        self.add(buffer, axes, is_checked=True)

    def add(self, buffer: BufferId, axes: tuple[int, ...], *, is_checked: bool = False) -> Array:
        self.arrays.append(Array(buffer, axes, is_checked))
        return self.arrays[-1]

    def new(self, dtype: str, axes: tuple[int, ...], *, is_once: bool = True) -> BufferId:
        """Add a buffer to write: a temporary one, or an output."""
        lengths = [self.lengths[axis] for axis in axes]
        results = self.b.program.results
        if self.flag():
            buffer = self.b.buffer("output", len(results), dtype, lengths, is_once=is_once)
            results.append(Result("buffer", buffer))
            known = {*self.b.program.constants, *self.b.program.lengths}
            if self.flag() or not known.issuperset(lengths):
                self.b.allocate(buffer)
            else:
                self.b.program.body.insert(0, Allocate(buffer))
            return buffer
        buffer = self.b.buffer("temporary", 0, dtype, lengths, is_once=is_once)
        if self.flag():
            self.b.allocate(buffer)
        return buffer

    # Values

    def literal(self, dtype: str) -> Value:
        number = self.one_of(numbers_of(dtype))
        return self.b.constant(dtype, NUMPY_DTYPES[dtype](number).item())

    def load(self, array: Array, at: dict[int, Value]) -> Value:
        """Load an element of an array at the index along each axis."""
        index = [at[axis] for axis in array.axes]
        lengths = [self.b.number(one) for one in self.b.program.buffers[array.buffer].lengths]
        if all(lengths) and self.draw(st.integers(0, 3)) == 3:
            # Always in bounds: the load may be hoisted.
            index = [self.b.index(self.draw(st.integers(0, int(one or 1) - 1))) for one in lengths]
        return self.b.load(array.buffer, index, is_guarded=array.is_checked and self.flag())

    def operands(self, at: dict[int, Value]) -> list[Value]:
        """Load the readable values in the loops over some axes."""
        readable = [array for array in self.arrays if set(array.axes) <= set(at)]
        n_loads = self.draw(st.integers(0, 3)) if readable else 0
        loaded = [self.load(self.one_of(readable), at) for _ in range(n_loads)]
        return [*at.values(), *loaded] or [self.literal("f64")]

    def expression(self, values: Sequence[Value], dtype: str) -> Value:
        """Draw operations on values; the last one has a given dtype."""
        values = list(values)
        for _ in range(self.draw(st.integers(0, 5))):
            values.append(self.operation(values))
        return self.b.cast(values[-1], dtype)

    def operation(self, values: list[Value]) -> Value:
        b = self.b
        first = self.one_of(values)
        dtype = b.dtype(first)
        name = self.one_of(OPERATIONS_OF[same_kind(dtype)])
        if dtype in UNSIGNED and name == "neg":
            name = "sub"
        if name == "cast":
            return b.cast(first, self.one_of(DTYPES))
        same = [value for value in values if b.dtype(value) == dtype]
        others = [
            self.one_of(same) if self.flag() else self.literal(dtype)
            for _ in range(OPERATIONS[name].arity - 1)
        ]
        args = [first, *others]
        if name == "select":
            return b.op("select", b.op("le", args[0], args[1]), args[1], args[2])
        if name in ("minimum", "maximum"):
            args = [self.extremal(arg) for arg in args]
        return b.op(name, *args)

    def extremal(self, value: Value) -> Value:
        """Make a zero positive, since the order of the two zeros is unspecified."""
        dtype = self.b.dtype(value)
        return self.b.op("add", value, self.b.constant(dtype, 0)) if dtype in FLOATS else value

    # Nests

    def loops(self, axes: Sequence[int], stack: ExitStack) -> dict[int, Value]:
        """Open a loop over each axis; an axis that occurs twice is on the diagonal."""
        at: dict[int, Value] = {}
        for axis in axes:
            if axis not in at:
                at[axis] = stack.enter_context(self.b.loop(self.lengths[axis])).index
        return at
