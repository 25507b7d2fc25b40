"""The builder: sharing, hoisting and store-to-load forwarding."""

import math

import numpy as np
import pytest

from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.interpret import interpret
from pytensor_fuse._native.program.model import Load, Result
from pytensor_fuse._native.program.text import print_program
from pytensor_fuse._native.program.verify import verify


@pytest.fixture
def b():
    return Builder()


@pytest.fixture
def vector(b):
    """Add an input of unknown length."""
    return b.given("input", 0, "f64", (None,))


@pytest.fixture
def pair(b):
    """Add an input of two elements."""
    return b.given("input", 1, "f64", (2,))


def body(b):
    """Return the text of the body, without the values' dtypes."""
    verify(b.program)
    text = print_program(b.program).split("body\n")[1]
    for dtype in ("f64", "i64", "bool"):
        text = text.replace(f":{dtype}", "")
    return "\n" + text


def temporary(b, lengths, *, is_once=True):
    return b.buffer("temporary", 0, "f64", lengths, is_once=is_once)


# Literals


def test_literals_are_shared_by_their_bits(b):
    assert b.constant("f64", 1) == b.constant("f64", 1.0)
    assert b.constant("f64", 0.0) != b.constant("f64", -0.0)
    assert b.constant("f64", math.nan) == b.constant("f64", math.nan)
    assert b.constant("i64", 1) != b.constant("i32", 1)
    assert b.index(1) == b.constant("i64", True)
    assert b.number(b.constant("f64", 1)) == 1.0
    assert [type(number) for number in b.program.constants.values()][:1] == [float]
    assert b.number(b.length(b.given("input", 0, "f64", (None,)), 0)) is None
    verify(b.program)


def test_lengths_are_shared(b, vector):
    assert b.length(vector, 0) == b.length(vector, 0) == b.program.buffers[vector].lengths[0]


# Operations


def test_equal_operations_are_one(b, pair):
    one, two = b.load(pair, (b.index(0),)), b.load(pair, (b.index(1),))
    assert b.op("sub", one, two) == b.op("sub", one, two)
    assert b.op("sub", one, two) != b.op("sub", two, one)
    assert b.cast(one, "f32") == b.cast(one, "f32") != b.cast(one, "i64")
    assert b.cast(one, "f64") == one


def test_work_that_does_not_vary_goes_out_of_loops(b, vector):
    n = b.length(vector, 0)
    with b.loop(n) as outer:
        with b.loop(n) as inner:
            square = b.op("mul", n, n)
            row = b.op("add", outer.index, square)
            b.op("add", inner.index, row)
        # The operation was hoisted here, although it was requested in the inner block.
        assert b.op("mul", n, n) == square
        assert b.op("add", outer.index, square) == row
    assert b.op("mul", n, n) == square
    assert (
        body(b)
        == """
  %3 = mul %0, %0
  for %1 < %0
    %4 = add %1, %3
    for %2 < %0
      %5 = add %2, %4
"""
    )


def test_what_a_closed_block_knows_is_done_anew(b, vector):
    n = b.length(vector, 0)
    for _ in range(2):
        with b.loop(n) as loop:
            b.load(vector, (loop.index,))
            b.op("neg", loop.index)
    assert (
        body(b)
        == """
  for %1 < %0
    %2 = load @0[%1]
    %3 = neg %1
  for %4 < %0
    %5 = load @0[%4]
    %6 = neg %4
"""
    )


def test_sides_of_branches_share_what_does_not_depend_on_them(b, vector):
    n = b.length(vector, 0)
    condition = b.op("eq", n, b.index(2))
    values = []
    sides = []
    for literal in (0, 1):
        with b.block() as side:
            values.append(b.op("sub", n, b.index(literal)))
            loaded = b.load(vector, (b.index(0),))
            assert b.load(vector, (b.index(0),)) == loaded
        sides.append(side)
    [out] = b.branch(condition, *sides, [(values[0], values[1])])
    assert b.dtype(out) == "i64"
    assert (
        body(b)
        == """
  %2 = eq %0, %1
  %6 = sub %0, %5
  if %2
    %4 = load @0[%3]
  else
    %7 = load @0[%3]
  choice %8 = %0 | %6
"""
    )


# Loads and stores


def test_a_stored_element_is_not_loaded(b, vector):
    n = b.length(vector, 0)
    buffer = temporary(b, [n])
    with b.loop(n) as loop:
        value = b.load(vector, (loop.index,))
        b.store(buffer, (loop.index,), value)
        assert b.load(buffer, (loop.index,)) == value
        with b.loop(n) as inner:
            assert b.load(buffer, (loop.index,)) == value
            assert b.load(buffer, (inner.index,)) != value
    with b.loop(n) as loop:
        assert b.load(buffer, (loop.index,)) != value


def test_a_value_stored_in_a_block_is_not_known_after_it(b, vector):
    zero, value = b.index(0), b.load(vector, (b.index(0),))
    buffer = temporary(b, [b.index(1)])
    with b.block() as side:
        b.store(buffer, (zero,), value)
        assert b.load(buffer, (zero,)) == value
    b.branch(b.constant("bool", False), side, [], [])
    assert b.load(buffer, (zero,)) != value


def test_buffers_that_are_written_again_are_read_again(b, vector):
    n, zero = b.length(vector, 0), b.index(0)
    buffer = temporary(b, [n], is_once=False)
    one, two = b.constant("f64", 1.0), b.constant("f64", 2.0)
    b.store(buffer, (zero,), one)
    assert b.load(buffer, (zero,)) == one
    # This may be the same element.
    b.store(buffer, (n,), two)
    again = b.load(buffer, (zero,))
    assert again != one
    assert b.load(buffer, (zero,)) == again
    assert b.load(buffer, (n,)) == two
    b.store(buffer, (zero,), one, "add")
    assert b.load(buffer, (zero,)) not in (one, again)


def test_reads_of_them_do_not_leave_their_block(b, vector):
    n, zero = b.length(vector, 0), b.index(0)
    buffer = temporary(b, [b.index(3)], is_once=False)
    one = b.constant("f64", 1.0)
    b.store(buffer, (zero,), one)
    with b.loop(n):
        # The last iteration may have written it.
        first = b.load(buffer, (zero,))
        assert first != one
        b.store(buffer, (zero,), b.op("add", first, first))
    last = b.load(buffer, (zero,))
    assert last not in (one, first)
    with b.block() as side:
        b.store(buffer, (zero,), last)
    b.branch(b.constant("bool", False), side, [], [])
    assert b.load(buffer, (zero,)) != last
    assert (
        body(b)
        == """
  store @1[%1] = %3
  for %4 < %0
    %5 = load @1[%1]
    %6 = add %5, %5
    store @1[%1] = %6
  %7 = load @1[%1]
  if %8
    store @1[%1] = %7
  %9 = load @1[%1]
"""
    )


def test_loops_that_only_read_do_not_make_known_values_old(b, vector):
    buffer = temporary(b, [b.index(3)], is_once=False)
    one = b.constant("f64", 1.0)
    b.store(buffer, (b.index(0),), one)
    with b.loop(b.length(vector, 0)):
        b.load(buffer, (b.index(0),))
    assert b.load(buffer, (b.index(0),)) == one


def homes(b, buffer):
    """Return the depth of the block of each load of a buffer."""
    found = []

    def walk(block, depth):
        for statement in block:
            if isinstance(statement, Load) and statement.buffer == buffer:
                found.append(depth)
            walk(getattr(statement, "body", []), depth + 1)

    walk(b.program.body, 0)
    return found


def test_loads_that_are_surely_in_bounds_leave_loops(b, vector, pair):
    n = b.length(vector, 0)
    with b.loop(n), b.loop(n):
        b.load(pair, (b.index(1),))
        b.load(vector, (b.index(0),))
    assert homes(b, pair) == [0]
    assert homes(b, vector) == [2]


@pytest.mark.parametrize(("index", "is_guarded"), [(1, True), (2, False), (-1, False)])
def test_other_loads_stay(b, pair, index, is_guarded):
    with b.loop(b.index(5)):
        b.load(pair, (b.index(index),), is_guarded=is_guarded)
    assert homes(b, pair) == [1]


def test_loads_stay_behind_the_writes(b, vector):
    n, zero = b.length(vector, 0), b.index(0)
    buffer = temporary(b, [b.index(2)])
    with b.loop(n) as outer:
        with b.loop(n) as inner:
            b.store(buffer, (inner.index,), b.load(vector, (outer.index,)))
        with b.loop(n), b.loop(n):
            b.load(buffer, (zero,))
    assert homes(b, buffer) == [1]
    with b.loop(n):
        b.load(buffer, (zero,))
    assert homes(b, buffer) == [1, 0]


# Loops


def test_reductions_and_carries(b, vector):
    n = b.length(vector, 0)
    zero, one = b.constant("f64", 0.0), b.index(1)
    out = b.buffer("output", 0, "f64", (n,))
    b.program.results.append(Result("buffer", out))
    b.allocate(out)
    with b.loop(n) as loop:
        factor = b.carried("i64")
        value = b.op("mul", b.load(vector, (loop.index,)), b.cast(factor, "f64"))
        b.store(out, (loop.index,), value)
        total = b.reduce(loop, "add", zero, value)
        last = b.carry(loop, factor, one, b.op("add", factor, factor))
    assert (b.dtype(total), b.dtype(last)) == ("f64", "i64")
    # Both are defined after the loop only.
    b.op("mul", total, b.cast(last, "f64"))
    assert (
        body(b)
        == """
  allocate @1
  for %3 < %0 carrying %4 = %2
    %5 = load @0[%3]
    %6 = cast %4
    %7 = mul %5, %6
    store @1[%3] = %7
    %9 = add %4, %4
  reduce %8 = add %1, %7
  carry %10 = %4 <- %9
  %11 = cast %10
  %12 = mul %8, %11
"""
    )
    [result] = interpret(b.program, [np.array([1.0, 1.0, 1.0])])
    assert result.tolist() == [1.0, 2.0, 4.0]


# Checks and allocation


def test_checks(b, vector):
    n = b.length(vector, 0)
    condition = b.op("lt", n, b.index(3))
    b.check(b.op("eq", n, n), ValueError, "{0}", n)
    b.check(condition, ValueError, "{0}", n)
    b.check(condition, ValueError, "other")
    b.check(b.constant("bool", True), TypeError, "never")
    b.check(b.constant("bool", False), ValueError, "other")
    assert b.program.failures == [(ValueError, "{0}"), (ValueError, "other")]
    # A condition is checked once.
    assert body(b).count("check") == 3


def test_outputs_have_lengths_of_the_outermost_block(b, vector):
    with b.loop(b.length(vector, 0)) as loop:
        buffer = b.buffer("output", 0, "f64", (loop.index,))
        with pytest.raises(ValueError, match="known in an inner block only"):
            b.allocate_before_use(buffer)


def test_allocations_come_before_the_first_use(b, vector):
    n = b.length(vector, 0)
    outs = [b.buffer("output", k, "f64", (n,)) for k in range(4)]
    b.check(b.op("lt", n, b.index(9)), ValueError, "")
    b.allocate_before_use(outs[3])
    with b.loop(n) as loop:
        b.store(outs[1], (loop.index,), b.load(vector, (loop.index,)))
        b.store(outs[0], (loop.index,), b.load(vector, (loop.index,)))
    for out in (outs[0], outs[1], outs[2]):
        b.allocate_before_use(out)
    with b.loop(n) as loop:
        b.store(outs[2], (loop.index,), b.load(vector, (loop.index,)))
        b.store(outs[3], (loop.index,), b.load(vector, (loop.index,)))
    b.place_allocations()
    b.place_allocations()
    found = [(type(one).__name__, getattr(one, "buffer", None)) for one in b.program.body]
    assert found == [
        ("Op", None),
        ("Check", None),
        # At the point of the request at the latest, in the order of the requests.
        ("Allocate", outs[3]),
        ("Allocate", outs[0]),
        ("Allocate", outs[1]),
        ("For", None),
        ("Allocate", outs[2]),
        ("For", None),
    ]


def test_a_failure_is_not_compared_with_all_others(b, vector):
    n_compared = 0

    class Message(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            nonlocal n_compared
            n_compared += 1
            return str(self) == str(other)

    for number in range(100):
        b.check(b.op("lt", b.length(vector, 0), b.index(number)), ValueError, Message(f"{number}"))
    assert len(b.program.failures) == 100
    assert n_compared < 100


def test_blocks_are_counted(b, vector):
    assert b.n_open_blocks == 1
    with b.loop(b.length(vector, 0)), b.block():
        assert b.n_open_blocks == 3
    assert b.n_open_blocks == 1
