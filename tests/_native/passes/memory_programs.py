"""Random programs whose loops write the same few arrays, at all kinds of indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.model import Result
from support.native.outcomes import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.program.model import BufferId, Value

_OPERATIONS = ("add", "mul", "sub", "xor", "maximum")


class _Writer:
    """Draws a program over integer arrays that have the same length along each axis."""

    def __init__(self, draw: Callable[..., Any], longest: int) -> None:
        self.draw = draw
        self.b = b = Builder()
        self.n = draw(st.integers(1, longest))
        numbers = draw(st.lists(st.integers(-3, 3), min_size=5, max_size=5))
        self.inputs = [
            np.resize(np.array(numbers), shape) for shape in ((self.n,), (self.n, self.n), ())
        ]
        is_known = draw(st.booleans())
        self.written: list[BufferId] = []
        for number, array in enumerate(self.inputs):
            shape = [length if is_known else None for length in array.shape]
            buffer = b.given("input", number, "i64", shape)
            b.program.buffers[buffer].is_once = False
            self.written.append(buffer)
        first, square, _ = self.written
        self.length = b.program.buffers[first].lengths[0]
        b.program.buffers[square].lengths = (self.length, self.length)
        for axes in (1, 2, 0):
            self.written.append(
                b.buffer("temporary", 0, "i64", [self.length] * axes, is_once=False)
            )
        out = b.buffer("output", 0, "i64", [self.length], is_once=False)
        b.allocate(out)
        b.program.results.append(Result("buffer", out))
        for buffer in self.written[3:]:
            self.fill(buffer)
        self.fill(out)
        self.written.append(out)
        # A few arrays are enough for conflicts.
        self.written = [self.one_of(self.written) for _ in range(draw(st.integers(1, 3)))]
        # Arrays that are written once.
        self.once: list[BufferId] = []

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[self.draw(st.integers(0, len(choices) - 1))]

    def fill(self, buffer: BufferId) -> None:
        b = self.b
        axes = len(b.program.buffers[buffer].lengths)
        if axes == 0:
            b.store(buffer, (), b.index(5))
            return
        with b.loop(self.length) as row:
            if axes == 1:
                b.store(buffer, (row.index,), row.index)
                return
            with b.loop(self.length) as column:
                b.store(buffer, (row.index, column.index), b.op("sub", row.index, column.index))

    def place(self, indices: Sequence[Value]) -> Value:
        """Draw an index that is in bounds."""
        kind = self.draw(st.integers(0, 7))
        if kind == 7 and indices:
            last = self.b.op("sub", self.length, self.b.index(1))
            return self.b.op("sub", last, self.one_of(indices))
        if kind == 6 or not indices:
            # The arrays have at least one element along each axis.
            return self.b.index(self.draw(st.integers(0, self.n - 1)))
        return self.one_of(indices)

    def index(self, buffer: BufferId, indices: Sequence[Value]) -> list[Value]:
        return [self.place(indices) for _ in self.b.program.buffers[buffer].lengths]

    def value(self, indices: Sequence[Value], known: Sequence[Value]) -> Value:
        b = self.b
        values = [*indices, *known, b.index(self.draw(st.integers(0, 2)))]
        for _ in range(self.draw(st.integers(0, 2))):
            buffer = self.one_of([*self.written, *self.once])
            is_guarded = self.draw(st.integers(0, 3)) == 3
            values.append(b.load(buffer, self.index(buffer, indices), is_guarded=is_guarded))
        return b.op(self.one_of(_OPERATIONS), self.one_of(values), values[-1])

    def statements(self, indices: list[Value], known: list[Value], depth: int) -> None:
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(indices, known, depth)

    def statement(self, indices: list[Value], known: list[Value], depth: int) -> None:
        """Draw a statement; add the value that it defines to the known values."""
        b = self.b
        kinds = ["store", "store", "load", "add", "check"]
        if depth < 2:
            kinds += ["if", "loop"]
        if depth == 0:
            kinds += ["once", "loop", "loop", "loop", "loop", "loop", "loop"]
        kind = self.one_of(kinds)
        if kind in ("store", "add"):
            buffer = self.one_of(self.written)
            value = self.value(indices, known)
            combiner = "add" if kind == "add" else ""
            b.store(buffer, self.index(buffer, indices), value, combiner)
        elif kind == "load":
            known.append(self.value(indices, known))
        elif kind == "check":
            holds = b.op("ne", self.value(indices, known), b.index(self.draw(st.integers(2, 9))))
            b.check(holds, ValueError, f"check {len(b.program.failures)}")
        elif kind == "if":
            condition = b.op("gt", self.value(indices, known), b.index(0))
            sides, values = [], []
            for _ in range(2):
                with b.block() as side:
                    inner = list(known)
                    self.statements(indices, inner, depth + 1)
                    values.append(self.value(indices, inner))
                sides.append(side)
            known += b.branch(condition, sides[0], sides[1], [(values[0], values[1])])
        elif kind == "once":
            buffer = b.buffer("temporary", 0, "i64", [self.length])
            with b.loop(self.length) as loop:
                value = self.value([loop.index], known)
                last = b.op("sub", self.length, b.index(1))
                b.store(buffer, (self.one_of((loop.index, b.op("sub", last, loop.index))),), value)
            self.once.append(buffer)
        else:
            with b.loop(self.length) as loop:
                self.statements([*indices, loop.index], inner := list(known), depth + 1)
                term = self.value([*indices, loop.index], inner)
                known.append(b.reduce(loop, self.one_of(_OPERATIONS[:2]), b.index(1), term))


@st.composite
def memory_programs(draw: Callable[..., Any], *, longest: int = 3) -> Case:
    """Draw a program and arrays for it, whose axes have at most a given length."""
    writer = _Writer(draw, longest)
    known: list[Value] = []
    for _ in range(draw(st.integers(1, 6))):
        writer.statement([], known, 0)
    b = writer.b
    total = b.buffer("output", 1, "i64", ())
    b.allocate(total)
    b.program.results.append(Result("buffer", total))
    sum_of_known = b.index(0)
    for value in known:
        sum_of_known = b.op("add", sum_of_known, value)
    b.store(total, (), sum_of_known)
    b.program.results += [Result("input", number) for number in range(3)]
    return Case(b.program, writer.inputs, [])
