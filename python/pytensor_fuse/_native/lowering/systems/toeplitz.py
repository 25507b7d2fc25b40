"""Symmetric Toeplitz systems: Levinson recursion, with a Cholesky factorization as the fallback.

The recursion and its conditions are those of `ToeplitzSolve`, with one step of refinement.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from pytensor_fuse._linalg.ops.toeplitz import (
    FEWEST_ROWS_COMPILED,
    LARGEST_FALL,
    NOT_AS_LONG,
    ToeplitzSolve,
)
from pytensor_fuse._native.lowering.matrices.operands import has_succeeded, sizes_of, transposed
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.systems.triangle_loops import clear_triangle
from pytensor_fuse._native.lowering.tensors import Tensor, stored
from pytensor_fuse._native.program.model import Operand

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import BufferId, Context, Index, Node, Tensors, Value


class _System(NamedTuple):
    """A linear system with a Toeplitz matrix.

    Attributes
    ----------
    size, columns
        The numbers of rows and of right-hand sides.
    row
        The first row of the matrix.
    right
        The right-hand sides, one after the other.
    """

    size: Value
    columns: Value
    row: BufferId
    right: Tensor


@lower.register(ToeplitzSolve)
def _toeplitz_solve(op: ToeplitzSolve, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    row, right = inputs
    rows, columns = right.lengths
    size = context.require_equal(row.lengths[0], rows, ValueError, NOT_AS_LONG)
    columns = context.length(columns)
    own = context.copied(Tensor(row.dtype, (size,), row.at))
    sides = context.copied(transposed(Tensor(right.dtype, (size, columns), right.at)))
    system = _System(size, columns, own, stored(builder, sides))
    solution = context.array("f64", (columns, size), is_once=False)
    pivots = context.array("f64", (size,), is_once=False)
    no = builder.constant("bool", False)
    [is_solved] = context.branch(
        builder.op("ge", size, builder.index(FEWEST_ROWS_COMPILED)),
        lambda: [_recursion(context, system, solution, pivots)],
        lambda: [no],
    )
    context.branch(
        is_solved,
        lambda: _refine(context, system, solution),
        lambda: _by_factor(context, system, solution, pivots),
    )
    return [transposed(context.held(solution)), context.held(pivots)]


def _recursion(context: Context, system: _System, solution: Operand, pivots: Operand) -> Value:
    """Solve by the Levinson recursion, and return whether it is stable; the size is at least 1."""
    builder = context.builder
    size, columns, row, right = system
    zero, one = builder.index(0), builder.index(1)
    unit = builder.constant("f64", 1.0)
    predictor = context.temporary("f64", (size,), is_once=False)
    first = builder.load(row, (zero,), is_guarded=True)
    is_positive = builder.op("gt", first, builder.constant("f64", 0.0))
    is_finite = builder.op("lt", first, builder.constant("f64", math.inf))
    least = builder.op("div", first, builder.constant("f64", LARGEST_FALL))
    _store(context, pivots, (zero,), first)
    with builder.loop(columns) as loop:
        begun = builder.op("div", right.at((loop.index, zero)), first)
        _store(context, solution, (loop.index, zero), begun)
    with builder.loop(builder.op("sub", size, one)) as steps:
        error, is_stable = builder.carried("f64"), builder.carried("bool")
        m = builder.op("add", steps.index, one)

        def step(m: Value = m, error: Value = error) -> tuple[Value, Value]:
            reflection = _reflection(context, row, predictor, m, error)
            _update(context, predictor, m, reflection)
            product = builder.op(
                "mul", builder.op("sub", unit, reflection), builder.op("add", unit, reflection)
            )
            smaller = builder.op("mul", error, product)
            _store(context, pivots, (m,), smaller)
            _extend(context, system, solution, predictor, m, smaller)
            # The comparison is false for NaN as well.
            return smaller, builder.op("ge", smaller, least)

        no = builder.constant("bool", False)
        next_error, next_stable = context.branch(is_stable, step, lambda: (error, no))
        builder.carry(steps, error, first, next_error)
        return builder.carry(
            steps, is_stable, builder.op("and", is_positive, is_finite), next_stable
        )


def _store(context: Context, array: Operand, index: Index, value: Value) -> None:
    buffer, prefix = array
    context.builder.store(buffer, (*prefix, *index), value)


def _before(context: Context, m: Value, number: int, j: Value) -> Value:
    """Return ``m - number - j``."""
    builder = context.builder
    return builder.op("sub", builder.op("sub", m, builder.index(number)), j)


def _reflection(
    context: Context, row: BufferId, predictor: BufferId, m: Value, error: Value
) -> Value:
    builder = context.builder
    first = builder.load(row, (m,))
    with builder.loop(builder.op("sub", m, builder.index(1))) as loop:
        known = builder.load(row, (_before(context, m, 1, loop.index),))
        term = builder.op("mul", known, builder.load(predictor, (loop.index,)))
        total = builder.reduce(loop, "add", first, term)
    return builder.op("div", total, builder.op("neg", error))


def _update(context: Context, predictor: BufferId, m: Value, reflection: Value) -> None:
    builder = context.builder
    with builder.loop(builder.op("floordiv", m, builder.index(2))) as loop:
        places = (loop.index,), (_before(context, m, 2, loop.index),)
        old = [builder.load(predictor, place) for place in places]
        for place, own, other in zip(places, old, old[::-1], strict=True):
            builder.store(
                predictor, place, builder.op("add", own, builder.op("mul", reflection, other))
            )
    builder.store(predictor, (builder.op("sub", m, builder.index(1)),), reflection)


def _extend(
    context: Context,
    system: _System,
    solution: Operand,
    predictor: BufferId,
    m: Value,
    error: Value,
) -> None:
    """Extend solutions of the leading ``m`` equations to ``m + 1``."""
    builder, held = context.builder, context.held(solution)
    with builder.loop(system.columns) as outer:
        column = outer.index
        with builder.loop(m) as loop:
            known = builder.load(system.row, (_before(context, m, 0, loop.index),))
            term = builder.op("mul", known, held.at((column, loop.index)))
            total = builder.reduce(loop, "add", builder.constant("f64", 0.0), term)
        last = builder.op("sub", system.right.at((column, m)), total)
        last = builder.op("div", last, error)
        with builder.loop(m) as loop:
            weight = builder.load(predictor, (_before(context, m, 1, loop.index),))
            place = column, loop.index
            moved = builder.op("add", held.at(place), builder.op("mul", weight, last))
            _store(context, solution, place, moved)
        _store(context, solution, (column, m), last)


def _refine(context: Context, system: _System, solution: Operand) -> None:
    """Add the solutions for the residuals."""
    builder, held = context.builder, context.held(solution)
    size, columns, row, right = system
    one, zero = builder.index(1), builder.constant("f64", 0.0)
    if builder.number(columns) == 0:
        return
    residual = context.temporary("f64", (columns, size))
    with builder.loop(columns) as outer:
        column = outer.index
        with builder.loop(size) as rows:
            i = rows.index
            with builder.loop(builder.op("add", i, one)) as loop:
                known = builder.load(row, (_before(context, i, 0, loop.index),))
                term = builder.op("mul", known, held.at((column, loop.index)))
                below = builder.reduce(loop, "add", zero, term)
            after = builder.op("add", i, one)
            with builder.loop(builder.op("sub", size, after)) as loop:
                known = builder.load(row, (builder.op("add", loop.index, one),))
                term = builder.op(
                    "mul", known, held.at((column, builder.op("add", loop.index, after)))
                )
                total = builder.reduce(loop, "add", below, term)
            rest = builder.op("sub", right.at((column, i)), total)
            builder.store(residual, (column, i), rest)
    correction = Operand(context.temporary("f64", (columns, size), is_once=False))
    unused = Operand(context.temporary("f64", (size,), is_once=False))
    again = _System(size, columns, row, stored(builder, residual))

    def correct() -> None:
        _recursion(context, again, correction, unused)

    context.branch(builder.op("gt", columns, builder.index(0)), correct)
    more = context.held(correction)

    def add(index: Index) -> None:
        _store(context, solution, index, builder.op("add", held.at(index), more.at(index)))

    context.nest((columns, size), add)


def _by_factor(context: Context, system: _System, solution: Operand, pivots: Operand) -> None:
    """Solve with the Cholesky factor of the whole matrix; NaN if there is none."""
    builder = context.builder
    size, columns, row, right = system
    factor = context.temporary("f64", (size, size), is_once=False)
    if not context.batch:
        # The recursion, which nearly all systems take, needs no memory for a matrix.
        builder.allocate(factor)
    # LAPACK reads the upper triangle, whose rows are prefixes of the first row.
    with builder.loop(size) as rows, builder.loop(builder.op("sub", size, rows.index)) as loop:
        place = rows.index, builder.op("add", rows.index, loop.index)
        builder.store(factor, place, builder.load(row, (loop.index,)))
    clear_triangle(context, Operand(factor), lower=True)
    report = builder.call("potrf_u", sizes_of(context, [size]), [factor])

    def square(index: Index) -> Value:
        pivot = builder.load(factor, (index[0], index[0]))
        return builder.op("mul", pivot, pivot)

    def solve() -> None:
        context.fill(solution, right.at)
        builder.call("potrs_u", sizes_of(context, [size, columns]), [solution, Operand(factor)])
        context.fill(pivots, square)

    def fail() -> None:
        for array in (solution, pivots):
            context.fill_with(array, math.nan)

    context.branch(has_succeeded(context, report), solve, fail)
