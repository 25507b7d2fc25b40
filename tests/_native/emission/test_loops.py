"""Reductions and accesses of all kinds in loops of all lengths, against NumPy."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from pytensor_fuse._native.program.arithmetic import NUMPY_DTYPES, evaluate
from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.interpret import interpret
from pytensor_fuse._native.program.model import COMBINERS, Result
from pytensor_fuse._native.program.operations import ALL, FLOATS, OPERATIONS, identity
from pytensor_fuse._native.program.parse import parse_program
from pytensor_fuse._native.program.verify import verify
from support.native.dtypes import numbers_of
from support.native.machine import MACHINES, call, compiled, run_code
from support.native.outcomes import Case, Outcome, assert_same_outcome, run

LENGTHS = (0, 1, 3, 7, 8, 9, 17)


def output(b, dtype, lengths, *, is_once=True):
    """Add an output that is allocated at the start."""
    number = len(b.program.results)
    buffer = b.buffer("output", number, dtype, lengths, is_once=is_once)
    b.program.results.append(Result("buffer", buffer))
    b.allocate(buffer)
    return buffer


def combiners_of(dtype):
    return [name for name in COMBINERS if dtype in OPERATIONS[name].takes]


def reductions(dtype, length, *, reassociates):
    """Return a program that reduces by all combiners, and their initial values."""
    b = Builder(reassociates=reassociates)
    x = b.given("input", 0, dtype, (length,))
    combiners, totals = [], []
    with b.loop(b.program.buffers[x].lengths[0]) as loop:
        term = b.load(x, (loop.index,))
        for combiner in combiners_of(dtype):
            for number in (identity(combiner, dtype), 1):
                combiners.append((combiner, NUMPY_DTYPES[dtype](number)))
                initial = b.constant(dtype, combiners[-1][1].item())
                totals.append(b.reduce(loop, combiner, initial, term))
    for total in totals:
        b.store(output(b, dtype, ()), (), total)
    return b.program, combiners


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("length", [None, 9])
@pytest.mark.parametrize(
    ("dtype", "reassociates"),
    [*[(dtype, False) for dtype in ALL], *[(dtype, True) for dtype in FLOATS]],
)
def test_reductions(dtype, machine, length, reassociates):
    program, combiners = reductions(dtype, length, reassociates=reassociates)
    function = compiled(program, MACHINES[machine])
    # Extrema of two zeros with different signs are unspecified.
    pool = [number for number in numbers_of(dtype)[::-1] if str(number) != "-0.0"]
    if dtype in FLOATS and reassociates:
        # Sums and products of these numbers are exact, or infinite, in any order.
        pool = [np.nan, 0.5, 2.0, -1.0, 1.0, 4.0]
    for length_now in LENGTHS if length is None else (length,):
        for start in (0, 1):
            given = np.resize(np.array(pool[start:], NUMPY_DTYPES[dtype]), length_now)
            expected = []
            for combiner, first in combiners:
                total = first
                for term in given:
                    total = evaluate(combiner, dtype, [total, term])
                expected.append(np.array(total))
            got = call(function, [given])
            assert_same_outcome(Outcome(got, []), Outcome(expected, []))


def test_sums_of_one_order_have_its_rounding():
    """Sum terms that any other order rounds differently."""
    given = np.array([1e16, 1.0, -1e16, 1.0, 1.0, 1e16, 3.0, -1e16, 1e-3, 7.0] * 3)
    b = Builder()
    x = b.given("input", 0, "f64", (None,))
    with b.loop(b.length(x, 0)) as loop:
        total = b.reduce(loop, "add", b.constant("f64", -0.0), b.load(x, (loop.index,)))
    b.store(output(b, "f64", ()), (), total)
    expected = reduce(lambda one, other: one + other, given, -0.0)
    for machine in MACHINES.values():
        [got] = call(compiled(b.program, machine), [given])
        assert got == expected


def matrices(rows, columns):
    """Return a program that reads and writes matrices in many ways."""
    b = Builder()
    n, m = b.index(rows), b.index(columns)
    x = b.given("input", 0, "f64", (rows, columns))
    flags = b.given("input", 1, "bool", (rows, columns))
    places = b.given("input", 2, "i64", (columns,))
    row_places = b.given("input", 3, "i32", (columns,))

    def nest(first, second, body):
        with b.loop(first) as one, b.loop(second) as other:
            body(one.index, other.index)

    across = output(b, "f64", (m, n))
    nest(n, m, lambda i, j: b.store(across, (j, i), b.load(x, (i, j))))
    along = output(b, "f64", (m, n))
    nest(m, n, lambda j, i: b.store(along, (j, i), b.load(x, (i, j))))
    backwards = output(b, "f64", (n, m))
    last = b.op("sub", m, b.index(1))
    nest(n, m, lambda i, j: b.store(backwards, (i, b.op("sub", last, j)), b.load(x, (i, j))))
    negated = output(b, "bool", (m, n))
    nest(n, m, lambda i, j: b.store(negated, (j, i), b.op("not", b.load(flags, (i, j)))))
    masked = output(b, "f64", (n, m))
    zero = b.constant("f64", 0.0)
    nest(
        n,
        m,
        lambda i, j: b.store(
            masked, (i, j), b.op("select", b.load(flags, (i, j)), b.load(x, (i, j)), zero)
        ),
    )
    gathered = output(b, "f64", (n, m))
    nest(
        n,
        m,
        lambda i, j: b.store(
            gathered, (i, j), b.load(x, (i, b.load(places, (j,))), is_guarded=True)
        ),
    )
    diagonal = output(b, "f64", (m,))
    with b.loop(m) as loop:
        row = b.cast(b.load(row_places, (loop.index,)), "i64")
        value = b.load(x, (row, loop.index), is_guarded=True)
        b.store(diagonal, (loop.index,), value)
    doubled = output(b, "i64", (b.index(2 * columns + 1),), is_once=False)
    with b.loop(b.index(2 * columns + 1)) as loop:
        b.store(doubled, (loop.index,), b.index(-1))
    with b.loop(m) as loop:
        at = b.op("add", b.op("mul", loop.index, b.index(2)), b.index(1))
        b.store(doubled, (at,), b.op("mul", loop.index, loop.index))
    for combiner in ("", "add", "maximum"):
        for dtype in ("f64", "i32", "bool"):
            if dtype == "bool":
                combiner = "xor" if combiner else ""
            scattered = output(b, dtype, (m,), is_once=False)
            filled = b.constant(dtype, 1)
            with b.loop(m) as loop:
                b.store(scattered, (loop.index,), filled)
            with b.loop(m) as loop:
                at = b.load(places, (loop.index,))
                value = b.cast(b.op("sub", loop.index, b.index(3)), dtype)
                b.store(scattered, (at,), value, combiner, is_guarded=True)
    rows_of = output(b, "f64", (n, m), is_once=False)
    nest(n, m, lambda i, j: b.store(rows_of, (i, j), zero))
    with b.loop(m) as loop:
        row = b.cast(b.load(row_places, (loop.index,)), "i64")
        with b.loop(m) as column:
            value = b.cast(b.op("add", loop.index, column.index), "f64")
            b.store(rows_of, (row, column.index), value, "add", is_guarded=True)
    return b.program


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 8), (9, 7), (2, 17), (4, 0), (8, 24)])
def test_accesses(machine, rows, columns):
    program = matrices(rows, columns)
    verify(program)
    random = np.random.default_rng(5)
    inputs = [
        random.normal(size=(rows, columns)),
        random.integers(0, 2, (rows, columns)).astype(bool),
        # Most indices occur twice.
        random.integers(0, max(columns // 2, 1), columns),
        random.integers(0, rows, columns).astype(np.int32),
    ]
    case = Case(program, inputs, [])
    function = compiled(program, MACHINES[machine])
    for at_end in (False, True):
        got = run(case, by=lambda _, x, c, f=function, e=at_end: run_code(f, x, c, at_end=e))
        assert_same_outcome(run(case), got)


CHECKED = """\
program
%0:i64 = length @0, 0
%1:i64 = constant 3
%2:i64 = constant 0
failure 0 ValueError "first {0} of {1}"
failure 1 IndexError "{0} {1} {2} {3} {4} {5} {6} {7}"
buffer @0 input 0 i64[%0] once
buffer @1 output 0 i64[%0] once
result buffer @1
body
  allocate @1
  for %3:i64 < %0
    %4:i64 = load @0[%3]
    %5:bool = ge %4, %2
    if %5
      %6:bool = lt %4, %1
      check %6 else 1(%0, %1, %2, %3, %4, %0, %1, %4)
      store @1[%3] = %4
    else
      %7:i64 = neg %4
      for %8:i64 < %7
        %9:bool = lt %8, %1
        check %9 else 0(%8, %3)
      reduce %10:bool = and %5, %9
      store @1[%3] = %7
"""


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("values", [[], [0, 1, 2], [1, -2, -3, 2], [0, 7], [2, -4], [-9, 9]])
def test_checks(machine, values):
    case = Case(parse_program(CHECKED), [np.array(values, np.int64)], [])
    function = compiled(case.program, MACHINES[machine])
    got = run(case, by=lambda _, inputs, constants: run_code(function, inputs, constants))
    assert_same_outcome(run(case), got)
    assert bool(got.raised) == (values not in ([], [0, 1, 2], [1, -2, -3, 2]))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("is_known", [False, True])
def test_extents_below_zero(machine, is_known):
    """Run no iteration, and write nothing."""
    b = Builder()
    x = b.given("input", 0, "i64", (3,))
    count = b.given("input", 1, "i64", ())
    out = output(b, "i64", (), is_once=False)
    extent = b.index(-5) if is_known else b.load(count, ())
    with b.loop(extent) as loop:
        total = b.reduce(loop, "add", b.index(7), b.load(x, (loop.index,)))
    b.store(out, (), total)
    inputs = [np.array([1, 2, 3]), np.array(-5)]
    assert interpret(b.program, inputs) == [7]
    assert run_code(compiled(b.program, MACHINES[machine]), inputs) == [7]


LATE = """\
program
%0:i64 = length @0, 0
%1:i64 = constant 0
%2:i64 = constant 3
failure 0 ValueError "too many"
buffer @0 input 0 i64[%0] once
buffer @1 temporary 0 i64[%0] once
buffer @2 temporary 0 i64[%6] once
buffer @3 temporary 0 f64[%6] once
buffer @4 temporary 0 i64[%14] once
buffer @5 output 0 i64[] once
result buffer @5
body
  allocate @5
  for %3:i64 < %0
    %4:i64 = load @0[%3]
    store @1[%3] = %4
  for %5:i64 < %0
    %7:i64 = load @1[%5]
  reduce %6:i64 = maximum %1, %7
  for %8:i64 < %6
    store @2[%8] = %8
    %9:f64 = cast %8
    store @3[%8] = %9
  for %10:i64 < %6
    %11:i64 = load @2[%10]
    %12:f64 = load @3[%10]
    %13:i64 = cast %12
    %15:i64 = add %11, %13
  reduce %14:i64 = add %1, %15
  for %16:i64 < %14
    store @4[%16] = %16
  %17:bool = lt %14, %0
  check %17 else 0
  for %18:i64 < %14
    %19:i64 = load @4[%18]
  reduce %20:i64 = add %1, %19
  store @5[] = %20
"""


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("values", [[], [0, 0], [2, 1, 0], [3, 1, 4, 1, 5] * 5, [9, 9]])
def test_buffers_of_late_lengths(machine, values):
    """Allocate memory several times, and free it, also if the call fails."""
    case = Case(parse_program(LATE), [np.array(values, np.int64)], [])
    verify(case.program)
    function = compiled(case.program, MACHINES[machine])
    got = run(case, by=lambda _, inputs, constants: run_code(function, inputs, constants))
    assert_same_outcome(run(case), got)


def test_memory_that_no_process_has_is_refused():
    """Use lengths for which the number of bytes wraps; the arrays that have them are empty."""
    b = Builder()
    shapes = [b.given("input", k, "f64", (0, None)) for k in range(2)]
    lengths = [b.length(one, 1) for one in shapes]
    temporary = b.buffer("temporary", 0, "f64", lengths)
    with b.loop(b.index(3)) as loop:
        b.store(temporary, (b.index(0), loop.index), b.constant("f64", 1.0))
    with b.loop(b.index(3)) as loop:
        term = b.load(temporary, (b.index(0), loop.index))
        total = b.reduce(loop, "add", b.constant("f64", 0.0), term)
    b.store(output(b, "f64", ()), (), total)
    function = compiled(b.program, MACHINES["512"])
    assert run_code(function, [np.zeros((0, 3))] * 2) == [3.0]
    with pytest.raises(AssertionError, match="there is no memory"):
        run_code(function, [np.zeros((0, 2**32)), np.zeros((0, 2**29))])
