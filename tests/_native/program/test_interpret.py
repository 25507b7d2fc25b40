"""The interpreter: results of programs, and errors for invalid actions."""

import numpy as np
import pytest

from pytensor_fuse._native.program.failures import raised_by
from pytensor_fuse._native.program.interpret import InterpreterError, interpret
from pytensor_fuse._native.program.model import Failure
from pytensor_fuse._native.program.parse import parse_program
from pytensor_fuse._native.program.verify import verify

HEAD = """program
%0:i64 = length @0, 0
%1:f64 = constant 1.0
%2:i64 = constant 0
%3:i64 = constant 2
failure 0 IndexError "index {0} of {1}, {2} {braces}"
buffer @0 input 0 f64[%0]
buffer @1 output 0 f64[%0] once
buffer @2 temporary 0 f64[%0]
buffer @3 output 1 f64[] once
result buffer @1
result buffer @3
result input 0
result output 0
body
  allocate @1
  allocate @3
"""


def run(body, *given):
    program = parse_program(HEAD + body)
    verify(program)
    given = [np.array([1.0, 2.0, 4.0])] if not given else list(given)
    outputs = interpret(program, given)
    assert outputs[2] is given[0]
    assert outputs[3] is outputs[0]
    return outputs


def test_loops_reduce_and_carry_in_order():
    first, last, *_ = run("""
  for %4:i64 < %0 carrying %5:f64 = %1
    %6:f64 = load @0[%4]
    store @1[%4] = %5
    %7:f64 = sub %6, %5
  reduce %8:f64 = mul %1, %6
  carry %9:f64 = %5 <- %7
  %10:f64 = div %9, %8
  store @3[] = %10
""")
    assert first.tolist() == [1.0, 0.0, 2.0]
    assert last.item() == 2.0 / 8.0


def test_loops_that_never_run_give_what_they_begin_with():
    first, last, *_ = run(
        """
  for %4:i64 < %0 carrying %5:f64 = %1
    %6:f64 = load @0[%4]
    store @1[%4] = %6
  reduce %7:f64 = add %1, %6
  carry %8:f64 = %5 <- %6
  %9:f64 = add %7, %8
  store @3[] = %9
""",
        np.zeros(0),
    )
    assert first.shape == (0,)
    assert last.item() == 2.0


def test_sides_of_branches_and_accumulation():
    first, last, given, _ = run("""
  for %4:i64 < %0
    %5:bool = ge %4, %3
    if %5
      store @1[%4] = %1
      %6:f64 = neg %1
    else
      %7:f64 = load @0[%4]
      store @1[%4] = %7
      store add @0[%2] = %7
    choice %8:f64 = %6 | %7
  reduce %9:f64 = minimum %1, %8
  store @3[] = %9
""")
    # The first element is loaded before the addition to it.
    assert first.tolist() == [1.0, 2.0, 1.0]
    assert given.tolist() == [4.0, 2.0, 4.0]
    assert last.item() == -1.0


def test_checks_raise():
    with pytest.raises(IndexError) as caught:
        run("""
  %4:bool = lt %0, %3
  check %4 else 0(%2, %0)
  store @3[] = %1
""")
    assert str(caught.value) == "index 0 of 3, {2} {braces}"


def test_messages_have_their_details():
    failure = Failure(ValueError, "{1} and {0}, not {2}, {} or {name}")
    error = raised_by(failure, [-3, 5])
    assert type(error) is ValueError
    assert str(error) == "5 and -3, not {2}, {} or {name}"


@pytest.mark.parametrize("access", ["%5:f64 = load @0[%4]", "store @1[%4] = %1"])
@pytest.mark.parametrize("past", [True, False])
def test_accesses_are_in_bounds(access, past):
    place = "add %0, %2" if past else "sub %2, %3"
    with pytest.raises(InterpreterError, match=r"accessed at \((3|-2),\)"):
        run(f"  %4:i64 = {place}\n  {access}\n")


def test_once_is_once():
    with pytest.raises(InterpreterError, match=r"@1 is once, and written again at \(0,\)"):
        run("  for %4:i64 < %0\n    store @1[%2] = %1\n")


def test_what_nothing_wrote_may_not_decide():
    body = """
  %4:f64 = load @2[%2]
  %5:f64 = add %4, %1
  %6:bool = lt %5, %1
  {}
"""
    run(body.format(""))
    for use in ("check %6 else 0", "if %6", "%7:i64 = cast %5\n  for %8:i64 < %7"):
        with pytest.raises(InterpreterError, match="controls execution and is unknown"):
            run(body.format(use))


def test_what_nothing_wrote_shows():
    first, last, *_ = run("""
  %4:f64 = load @2[%2]
  %5:bool = lt %1, %1
  %6:f64 = select %5, %4, %1
  store @1[%2] = %6
  store add @2[%2] = %1
  %7:f64 = load @2[%2]
  store @3[] = %7
""")
    np.testing.assert_array_equal(first, [1.0, np.nan, np.nan])
    assert np.isnan(last)


def test_lengths_are_not_negative():
    text = """program
%0:i64 = constant 1
buffer @0 output 0 f64[%1] once
result buffer @0
body
  %1:i64 = neg %0
  allocate @0
"""
    program = parse_program(text)
    verify(program)
    with pytest.raises(InterpreterError, match=r"@0 is of shape \(-1,\)"):
        interpret(program, [])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "input 0 is not given"),
        ([np.zeros((2, 3), np.float32)], "@0 is f64, and given as float32"),
        ([np.zeros(2)], "@0 is given with 1 axes"),
        ([np.zeros((2, 4)), np.zeros(2)], r"@0 is of shape \(2, 2\), and given as \(2, 4\)"),
        ([np.zeros((2, 2)), np.zeros(3)], r"@1 is of shape \(2,\), and given as \(3,\)"),
    ],
)
def test_arrays_are_those_declared(given, message):
    text = """program
%0:i64 = constant 2
%1:i64 = length @0, 0
buffer @0 input 0 f64[%1, %0] once
buffer @1 input 1 f64[%1] once
body
"""
    with pytest.raises(InterpreterError, match=message):
        interpret(parse_program(text), given)


def test_constants_are_read():
    text = """program
%0:i64 = constant 2
%3:u8 = constant 250
buffer @0 constant 0 u8[%0] once
buffer @1 output 0 u8[] once
result buffer @1
body
  for %1:i64 < %0
    %2:u8 = load @0[%1]
  reduce %4:u8 = add %3, %2
  allocate @1
  store @1[] = %4
"""
    [out] = interpret(parse_program(text), [], [np.array([3, 4], np.uint8)])
    assert out.dtype == np.uint8
    assert out.item() == 1
