"""The loop nests of random programs."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.external.routines import ROUTINES
from pytensor_fuse._native.program.model import Operand, Result
from pytensor_fuse._native.program.operations import FLOATS
from support.native.dtypes import COMBINERS_OF, DTYPES, same_kind
from support.native.outcomes import Case
from support.native.programs.writing import AXES, Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.program.external.routines import Role
    from pytensor_fuse._native.program.model import BufferId, Value

# Routines, and the index of each of their sizes among the two lengths.
_ROUTINES = (
    ("matmul_nn", (0, 1, 0)),
    ("matmul_nt", (1, 0, 0)),
    ("matmul_tn", (1, 1, 0)),
    ("matmul_tt", (0, 0, 1)),
    ("add_matvec_n", (0, 1)),
    ("add_matvec_t", (1, 0)),
    ("potrf_l", (0,)),
    ("potrf_u", (1,)),
    ("solve_l", (0, 1)),
    ("solve_ut_unit", (1, 0)),
    ("solve_u_vector", (0,)),
)


class _Nests(Writer):
    """Draws the nests of a program."""

    def elementwise(self) -> None:
        axes, dtype = self.one_of(AXES[:5]), self.one_of(DTYPES)
        buffer = self.new(dtype, axes)
        with ExitStack() as stack:
            at = self.loops(axes, stack)
            value = self.expression(self.operands(at), dtype)
            self.b.store(buffer, [at[axis] for axis in axes], value)
        self.add(buffer, axes)

    def reduction(self) -> None:
        kept, axis, dtype = self.one_of(AXES[:3]), self.one_of((0, 1)), self.one_of(DTYPES)
        if axis in kept:
            axis = 1 - axis
        buffer = self.new(dtype, kept)
        with ExitStack() as stack:
            at = self.loops(kept, stack)
            n_outs = self.draw(st.integers(1, 2))
            initials = [self.extremal(self.literal(dtype)) for _ in range(n_outs)]
            outs = []
            with self.b.loop(self.lengths[axis]) as loop:
                inner = {**at, axis: loop.index}
                for initial in initials:
                    combiner = self.one_of(COMBINERS_OF[same_kind(dtype)])
                    term = self.extremal(self.expression(self.operands(inner), dtype))
                    outs.append(self.b.reduce(loop, combiner, initial, term))
            self.b.store(buffer, [at[one] for one in kept], self.expression(outs, dtype))
        self.add(buffer, kept)

    def scan(self) -> None:
        axis, dtype = self.one_of((0, 1)), self.one_of(DTYPES)
        buffer = self.new(dtype, (axis,))
        last = self.new(dtype, ())
        initial = self.literal(dtype)
        with self.b.loop(self.lengths[axis]) as loop:
            carried = self.b.carried(dtype)
            value = self.expression([*self.operands({axis: loop.index}), carried], dtype)
            self.b.store(buffer, (loop.index,), self.one_of((value, carried)))
            out = self.b.carry(loop, carried, initial, value)
        self.b.store(last, (), out)
        self.add(buffer, (axis,))
        self.add(last, ())

    def running(self) -> None:
        """Carry a value from an iteration to the next in memory."""
        axis, dtype = self.one_of((0, 1)), self.one_of(DTYPES)
        buffer, last = self.new(dtype, (), is_once=False), self.new(dtype, ())
        self.b.store(buffer, (), self.literal(dtype))
        before = self.b.load(buffer, ())
        with self.b.loop(self.lengths[axis]) as loop:
            values = [*self.operands({axis: loop.index}), self.b.load(buffer, ())]
            self.b.store(buffer, (), self.expression(values, dtype))
        self.b.store(last, (), self.expression([before, self.b.load(buffer, ())], dtype))
        self.add(buffer, ())
        self.add(last, ())

    def by_rows(self) -> None:
        """Write an array row by row, and read each row, or the first one, at once."""
        dtype = self.one_of(DTYPES)
        rows, totals = self.new(dtype, (0, 1)), self.new(dtype, (0,))
        initial = self.extremal(self.literal(dtype))
        with self.b.loop(self.lengths[0]) as row:
            with self.b.loop(self.lengths[1]) as column:
                at = {0: row.index, 1: column.index}
                value = self.expression(self.operands(at), dtype)
                self.b.store(rows, (row.index, column.index), value)
            with self.b.loop(self.lengths[1]) as column:
                first = self.b.load(rows, (self.b.index(0), self.b.index(0)))
                term = self.expression([first, self.b.load(rows, (row.index, column.index))], dtype)
                combiner = self.one_of(COMBINERS_OF[same_kind(dtype)])
                total = self.b.reduce(column, combiner, initial, self.extremal(term))
            self.b.store(totals, (row.index,), total)
        self.add(rows, (0, 1))
        self.add(totals, (0,))

    def generator(self) -> BufferId:
        """Return one of two generators of random numbers."""
        if len(self.generators) < 2 and self.flag():
            place = len(self.inputs)
            self.generators[place] = self.b.given("input", place, "u64", (1,))
            self.b.program.buffers[self.generators[place]].is_once = False
            self.inputs.append(np.zeros(1, np.uint64))
        if not self.generators:
            return self.generator()
        return self.one_of([*self.generators.values()])

    def drawn(self, at: dict[int, Value]) -> Value:
        """Draw a random number in the program, from a distribution that accepts all parameters."""
        b, name = self.b, self.one_of(("standard_normal", "laplace", "exponential", "binomial"))
        params = {
            "standard_normal": [],
            "laplace": [self.expression(self.operands(at), "f64"), b.constant("f64", 1.0)],
            "exponential": [self.expression(self.operands(at), "f64")],
            "binomial": [b.constant("f64", 0.25), b.index(self.draw(st.integers(0, 200)))],
        }
        return b.draw(name, self.generator(), params[name])

    def random(self) -> None:
        """Draw random numbers into an array, and one more, which depends on the number of draws."""
        axes = self.one_of(AXES[:5])
        buffer = self.new("f64", axes)
        with ExitStack() as stack:
            at = self.loops(axes, stack)
            drawn = [self.drawn(at) for _ in range(self.draw(st.integers(1, 2)))]
            self.b.store(buffer, [at[axis] for axis in axes], self.b.cast(drawn[-1], "f64"))
        self.add(buffer, axes)
        last = self.new("f64", ())
        self.b.store(last, (), self.b.draw("standard_normal", self.generator(), []))
        self.add(last, ())

    def branch(self) -> None:
        axes, dtype = self.one_of(AXES[:5]), self.one_of(DTYPES)
        buffer = self.new(dtype, axes)
        stores_inside = self.flag()
        with ExitStack() as stack:
            at = self.loops(axes, stack)
            index = [at[axis] for axis in axes]
            condition = self.expression(self.operands(at), "bool")
            sides, values = [], []
            for _ in range(2):
                with self.b.block() as side:
                    values.append(self.expression(self.operands(at), dtype))
                    if stores_inside:
                        self.b.store(buffer, index, values[-1])
                sides.append(side)
            choices = [] if stores_inside else [(values[0], values[1])]
            for out in self.b.branch(condition, sides[0], sides[1], choices):
                self.b.store(buffer, index, out)
        self.add(buffer, axes)

    def position(self, at: dict[int, Value], length: Value) -> Value:
        """Draw a computed position along an axis, checked, and mostly within it."""
        b = self.b
        place = self.expression(self.operands(at), "i64")
        if self.draw(st.integers(0, 7)) < 7:
            place = b.op("mod", place, length)
        inside = b.op("and", b.op("ge", place, b.index(0)), b.op("lt", place, length))
        b.check(inside, IndexError, "index {0} is out of bounds for size {1}", place, length)
        return place

    def gather(self) -> None:
        axis, source = self.one_of((0, 1)), self.one_of(self.arrays)
        dtype = self.b.program.buffers[source.buffer].dtype
        buffer = self.new(dtype, (axis,))
        with self.b.loop(self.lengths[axis]) as loop:
            places = [self.position({axis: loop.index}, self.lengths[one]) for one in source.axes]
            value = self.b.load(source.buffer, places, is_guarded=True)
            self.b.store(buffer, (loop.index,), value)
        self.add(buffer, (axis,))

    def scatter(self) -> None:
        axes, axis, dtype = self.one_of(AXES[:5]), self.one_of((0, 1)), self.one_of(DTYPES)
        combiner = self.one_of(COMBINERS_OF[same_kind(dtype)] + ("",))
        buffer = self.new(dtype, axes, is_once=False)
        with ExitStack() as stack:
            at = self.loops(axes, stack)
            filled = self.extremal(self.expression(self.operands(at), dtype))
            self.b.store(buffer, [at[one] for one in axes], filled)
        with self.b.loop(self.lengths[axis]) as loop:
            places = [self.position({axis: loop.index}, self.lengths[one]) for one in axes]
            value = self.extremal(self.expression(self.operands({axis: loop.index}), dtype))
            self.b.store(buffer, places, value, combiner, is_guarded=True)
        self.add(buffer, axes)

    def overwriting(self) -> None:
        """Overwrite an input that is read before and after."""
        about = self.b.program.buffers
        array = self.one_of([one for one in self.arrays if about[one.buffer].kind == "input"])
        if about[array.buffer].is_once:
            # Only inputs that are written from the start: earlier loads may be shared.
            return
        with ExitStack() as stack:
            at = self.loops(array.axes, stack)
            index = [at[axis] for axis in array.axes]
            value = self.expression(
                [*self.operands(at), self.load(array, at)], about[array.buffer].dtype
            )
            self.b.store(array.buffer, index, value, is_guarded=array.is_checked)

    def routine(self) -> None:
        """Call a routine, on whole matrices or on each matrix of a batch."""
        name, axes_of_sizes = self.one_of(_ROUTINES)
        routine, dtype = ROUTINES[name], self.one_of(FLOATS)
        axes = dict(zip(routine.sizes, axes_of_sizes, strict=True))
        sizes = [self.lengths[axis] for axis in axes_of_sizes]
        batch = self.one_of(((), (0,), (1,)))
        report = self.new("i64", batch) if routine.reports else None
        roles = [(role, tuple(axes[size] for size in role.sizes)) for role in routine.operands]
        found = [self.operand(role, own, dtype, batch) for role, own in roles]
        with ExitStack() as stack:
            at = self.loops(batch, stack)
            operands = []
            for (role, own), (buffer, outer, is_filled) in zip(roles, found, strict=True):
                prefix = tuple(at[axis] for axis in outer)
                if not is_filled and role.is_read:
                    self.fill(Operand(buffer, prefix), own, at)
                operands.append(Operand(buffer, prefix))
            out = self.b.call(name, sizes, operands)
            if report is not None:
                self.b.store(report, [at[axis] for axis in batch], out)
        if report is not None:
            self.add(report, batch)
        for (_, own), (buffer, outer, is_filled) in zip(roles, found, strict=True):
            if not is_filled:
                self.add(buffer, (*outer, *own))

    def operand(
        self, role: Role, axes: tuple[int, ...], dtype: str, batch: tuple[int, ...]
    ) -> tuple[BufferId, tuple[int, ...], bool]:
        """Return a buffer for a routine, its axes before those of the operand, and if it is filled.

        An operand that is only read may exist already, or be the same for a whole batch.
        """
        if role.is_written:
            return self.new(dtype, (*batch, *axes), is_once=not role.is_read), batch, False
        outer = batch if self.flag() else ()
        for array in self.arrays:
            is_fit = array.axes == (*outer, *axes)
            if is_fit and self.b.program.buffers[array.buffer].dtype == dtype and self.flag():
                return array.buffer, outer, True
        buffer = self.new(dtype, (*outer, *axes))
        if outer == batch:
            return buffer, outer, False
        self.fill(Operand(buffer), axes, {})
        self.add(buffer, axes)
        return buffer, outer, True

    def fill(self, operand: Operand, axes: tuple[int, ...], outer: dict[int, Value]) -> None:
        """Write all elements of a buffer behind a prefix."""
        buffer, prefix = operand
        dtype = self.b.program.buffers[buffer].dtype
        with ExitStack() as stack:
            index = [stack.enter_context(self.b.loop(self.lengths[axis])).index for axis in axes]
            at = {**outer, **dict(zip(axes, index, strict=True))}
            value = self.expression([*self.operands(at), *index], dtype)
            self.b.store(buffer, [*prefix, *index], value)

    def results(self) -> None:
        """Return overwritten inputs, and some outputs twice."""
        program = self.b.program
        self.elementwise()
        if not program.results:
            last = self.arrays[-1]
            about = program.buffers[last.buffer]
            buffer = self.b.buffer("output", 0, about.dtype, about.lengths)
            self.b.allocate(buffer)
            with ExitStack() as stack:
                at = self.loops(last.axes, stack)
                self.b.store(buffer, [at[axis] for axis in last.axes], self.load(last, at))
            program.results.append(Result("buffer", buffer))
        for about in program.buffers:
            is_array = about.position not in self.generators
            if about.kind == "input" and is_array and not about.is_once:
                program.results.append(Result("input", about.position))
        if self.flag():
            program.results.append(
                Result("output", self.draw(st.integers(0, len(program.results) - 1)))
            )


def written(
    draw: Callable[..., Any], builder: Builder, *, longest: int = 4, most_nests: int = 4
) -> Case:
    """Write a program into a builder; the draws do not depend on the kind of builder."""
    writer = _Nests(draw, builder, longest)
    writer.given("f64", (0, 1))
    for _ in range(draw(st.integers(0, 3))):
        array = writer.given(writer.one_of(DTYPES), writer.one_of(AXES))
        builder.program.buffers[array.buffer].is_once = draw(st.integers(0, 3)) < 3
    if writer.flag():
        writer.constant()
    nests = (
        writer.elementwise,
        writer.reduction,
        writer.scan,
        writer.branch,
        writer.gather,
        writer.scatter,
        writer.overwriting,
        writer.running,
        writer.by_rows,
        writer.routine,
        writer.random,
    )
    for _ in range(draw(st.integers(0, most_nests))):
        writer.one_of(nests)()
    writer.results()
    return Case(builder.program, writer.inputs, writer.constants, tuple(writer.generators))


@st.composite
def native_programs(
    draw: Callable[..., Any], *, longest: int = 4, most_nests: int = 4, reassociates: bool = False
) -> Case:
    """Draw valid programs with arguments; the checks of some of them fail.

    Parameters
    ----------
    longest
        The maximum length of an axis.
    most_nests
        The maximum number of loop nests, in addition to a final one.
    reassociates
        As for the programs.
    """
    builder = Builder(reassociates=reassociates)
    return written(draw, builder, longest=longest, most_nests=most_nests)
