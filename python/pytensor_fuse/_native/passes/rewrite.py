"""Rebuilding of programs through a builder, statement by statement.

The builder shares, hoists and forwards; dead statements, values and buffers are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.passes.liveness import Live
from pytensor_fuse._native.program import model
from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.model import Program
from pytensor_fuse._native.program.walking import defined_by, used_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytensor_fuse._native.program.model import BufferId, Statement, Value


def rewritten(
    program: Program,
    merged: Mapping[model.For, Sequence[Value]] | None = None,
    *,
    reciprocals: bool = False,
) -> Program:
    """Return an equivalent program with common work shared and dead code left out.

    Parameters
    ----------
    program
        The program, which is not changed.
    merged
        For each fused loop, the indices of the loops merged into it.
    reciprocals
        Whether a division by a loop-invariant value becomes a product with its reciprocal, as
        `numba__fastmath` allows; the last bit of a result may differ.

    Returns
    -------
    Program
        A program that shares no mutable part with the old one.
    """
    return _Rewriter(program, merged or {}, reciprocals).run()


class _Rewriter:
    def __init__(
        self, program: Program, merged: Mapping[model.For, Sequence[Value]], reciprocals: bool
    ) -> None:
        self._old = program
        self._reciprocals = reciprocals
        self._merged = merged
        self._live = Live(program)
        self._builder = Builder(
            reassociates=program.reassociates,
            calls_libm=program.calls_libm,
            failures=program.failures,
        )
        self._values: dict[Value, Value] = {}
        self._buffers: dict[BufferId, BufferId] = {}
        # The operands of equality comparisons, while `_early_first`'s early statements are written.
        self._compared: dict[Value, tuple[Value, ...]] = {}

    def run(self) -> Program:
        old, builder = self._old, self._builder
        for number, about in enumerate(old.buffers):
            if about.kind == "input" or number in self._live.buffers:
                self._buffers[number] = builder.buffer(
                    about.kind, about.position, about.dtype, (), is_once=about.is_once
                )
        for number, new in self._buffers.items():
            # Computed lengths are set later, when the buffer is first accessed.
            if old.buffers[number].kind != "temporary" and all(
                one in old.constants or one in old.lengths for one in old.buffers[number].lengths
            ):
                self._set_lengths(number, new)
        early, late = _early_first(old)
        self._compared = {
            one.out: one.args for one in early if isinstance(one, model.Op) and one.name == "eq"
        }
        self._block(early)
        self._compared = {}
        self._block(late)
        for result in old.results:
            if result.kind == "buffer":
                result = model.Result("buffer", self._buffers[result.number])
            builder.program.results.append(result)
        return builder.program

    def _set_lengths(self, number: BufferId, new: BufferId) -> None:
        lengths = tuple([self._value(one) for one in self._old.buffers[number].lengths])
        self._builder.program.buffers[new].lengths = lengths

    def _value(self, value: Value) -> Value:
        found = self._values.get(value)
        if found is None:
            old, builder = self._old, self._builder
            if value in old.constants:
                found = builder.constant(old.dtypes[value], old.constants[value])
            else:
                buffer, axis = old.lengths[value]
                found = builder.length(self._buffers[buffer], axis)
            self._values[value] = found
        return found

    def _block(self, statements: Sequence[Statement]) -> None:
        builder, value = self._builder, self._value
        needed, values, dtypes = self._live.statements, self._values, self._old.dtypes
        for statement in statements:
            if statement not in needed:
                continue
            if isinstance(statement, model.Op):
                args = [values[arg] if arg in values else value(arg) for arg in statement.args]
                if statement.name == "cast":
                    out = builder.cast(args[0], dtypes[statement.out])
                elif statement.name == "div" and self._has_reciprocal(args[0], args[1]):
                    one = builder.constant(builder.dtype(args[1]), 1.0)
                    out = builder.op("mul", args[0], builder.op("div", one, args[1]))
                else:
                    out = builder.operation(statement.name, dtypes[statement.out], tuple(args))
                values[statement.out] = out
            elif isinstance(statement, model.Load):
                values[statement.out] = builder.load(
                    self._buffer(statement.buffer),
                    [value(at) for at in statement.index],
                    is_guarded=statement.is_guarded,
                )
            elif isinstance(statement, model.Store):
                builder.store(
                    self._buffer(statement.buffer),
                    [value(at) for at in statement.index],
                    value(statement.value),
                    statement.combiner,
                    is_guarded=statement.is_guarded,
                )
            elif isinstance(statement, model.For):
                self._loop(statement)
            elif isinstance(statement, model.If):
                self._branch(statement)
            elif isinstance(statement, model.Check):
                failure = self._old.failures[statement.failure]
                builder.check(
                    value(statement.condition),
                    failure.exception,
                    failure.message,
                    *[value(one) for one in statement.details],
                )
                self._take_for_one(self._compared.get(statement.condition, ()))
            elif isinstance(statement, model.Call):
                report = builder.call(
                    statement.name,
                    [value(size) for size in statement.sizes],
                    [
                        model.Operand(self._buffer(buffer), tuple([value(at) for at in prefix]))
                        for buffer, prefix in statement.operands
                    ],
                )
                if statement.out is not None:
                    values[statement.out] = report
            elif isinstance(statement, model.Draw):
                values[statement.out] = builder.draw(
                    statement.name,
                    self._buffer(statement.generator),
                    [value(arg) for arg in statement.args],
                )
            elif isinstance(statement, model.Allocate):
                builder.allocate(self._buffer(statement.buffer))

    def _take_for_one(self, equal: Sequence[Value]) -> None:
        """Replace one of two lengths by the other after a check that they are equal.

        Loops over the two then have the same range, and their accesses are in bounds only after the
        check. The check must therefore depend on lengths alone: `Dependences` orders all loops
        after such checks, but only guarded accesses after others.
        """
        old = self._old
        lengths = [one for one in equal if one in old.lengths]
        known = [one for one in equal if one in old.constants]
        if len(lengths) + len(known) == 2 and lengths:
            stands_for_both = self._value((known or lengths)[0])
            for length in lengths:
                self._values[length] = stands_for_both

    def _has_reciprocal(self, dividend: Value, divisor: Value) -> bool:
        """Whether a division becomes a product with a reciprocal that is hoisted out of a loop."""
        builder = self._builder
        return (
            self._reciprocals
            and builder.number(divisor) is None
            and builder.depth(divisor) < builder.depth(dividend)
        )

    def _buffer(self, buffer: BufferId) -> BufferId:
        new = self._buffers[buffer]
        about = self._builder.program.buffers[new]
        if len(about.lengths) != len(self._old.buffers[buffer].lengths):
            self._set_lengths(buffer, new)
        return new

    def _loop(self, loop: model.For) -> None:
        builder, value, live = self._builder, self._value, self._live.values
        reductions = [one for one in loop.reductions if one.out in live]
        carries = [one for one in loop.carries if one.out in live or one.inner in live]
        extent = value(loop.extent)
        number = builder.number(extent)
        if number is not None and number <= 0:
            for reduction in reductions:
                self._values[reduction.out] = value(reduction.initial)
            for carry in carries:
                self._values[carry.out] = value(carry.initial)
            return
        initials = [value(reduction.initial) for reduction in reductions]
        initials += [value(carry.initial) for carry in carries]
        with builder.loop(extent) as new:
            for index in (loop.index, *self._merged.get(loop, ())):
                self._values[index] = new.index
            for carry in carries:
                self._values[carry.inner] = builder.carried(self._old.dtypes[carry.inner])
            self._block(loop.body)
            if loop.until is not None:
                new.until = value(loop.until)
            for reduction, initial in zip(reductions, initials, strict=False):
                self._values[reduction.out] = builder.reduce(
                    new, reduction.combiner, initial, value(reduction.term)
                )
            for carry, initial in zip(carries, initials[len(reductions) :], strict=True):
                self._values[carry.out] = builder.carry(
                    new, value(carry.inner), initial, value(carry.following)
                )

    def _branch(self, branch: model.If) -> None:
        builder, value = self._builder, self._value
        choices = [one for one in branch.choices if one.out in self._live.values]
        with builder.block() as then:
            self._block(branch.then)
            ones = [value(choice.then) for choice in choices]
        with builder.block() as otherwise:
            self._block(branch.otherwise)
            others = [value(choice.otherwise) for choice in choices]
        outs = builder.branch(
            value(branch.condition), then, otherwise, list(zip(ones, others, strict=True))
        )
        self._values.update(zip([choice.out for choice in choices], outs, strict=True))


def _early_first(program: Program) -> tuple[list[Statement], list[Statement]]:
    """Split the outermost block into statements that depend on lengths alone, and the rest."""
    early: list[Statement] = []
    late: list[Statement] = []
    given = {*program.constants, *program.lengths}
    for statement in program.body:
        if isinstance(statement, model.Op | model.Check) and given.issuperset(used_by(statement)):
            early.append(statement)
            given.update(defined_by(statement))
        else:
            late.append(statement)
    return early, late
