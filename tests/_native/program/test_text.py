"""The text format of programs, and errors for malformed text."""

import math
from textwrap import dedent

import numpy as np
import pytest
from pytensor.tensor.exceptions import ShapeError

from pytensor_fuse._native.program.errors import ParseError
from pytensor_fuse._native.program.model import (
    Call,
    Failure,
    For,
    If,
    Load,
    Operand,
    Program,
    Result,
    Store,
)
from pytensor_fuse._native.program.parse import parse_program
from pytensor_fuse._native.program.text import print_program
from pytensor_fuse._native.program.verify import verify

ALL = r"""program reassociates
%0:i64 = constant 3
%1:f64 = constant 0x1.8000000000000p+0
%2:f64 = constant -0x0.0p+0
%3:f64 = constant nan
%4:f32 = constant -inf
%5:bool = constant true
%6:u64 = constant 18446744073709551615
%7:i64 = length @0, 1
failure 0 IndexError "index {0} is \"out\" # of \u00e4\nbounds"
failure 1 pytensor.tensor.exceptions.ShapeError ""
failure 2 numpy.linalg.LinAlgError "singular"
buffer @0 input 0 f64[%0, %7]
buffer @1 constant 0 bool[] once
buffer @2 temporary 0 i8[%0] once
buffer @3 output 1 f64[%0]
buffer @4 temporary 0 f64[%0, %0]
buffer @5 temporary 0 f64[%0, %0]
result input 0
result buffer @3
result output 1
body
  allocate @3
  %8:bool = load @1[]
  for %9:i64 < %0 carrying %10:f64 = %1, %11:i64 = %7
    %12:f64 = load guarded @0[%9, %11]
    %13:f64 = hyp2f1 %12, %12, %1, %2
    store @3[%9] = %13
    store add @0[%9, %9] = %13
    store guarded maximum @0[%9, %9] = %13
    store guarded @0[%9, %9] = %13
  reduce %14:f64 = mul %1, %13
  reduce %15:f64 = add %2, %13
  carry %16:f64 = %10 <- %13
  carry %17:i64 = %11 <- %9
  for %18:i64 < %7
  if %8
    if %5
    else
      check %8 else 1
  else
    check %8 else 0(%0, %7)
  choice %19:f64 = %14 | %15
  choice %20:f64 = %15 | %16
  if %5
  for %21:i64 < %0
    call matvec_n(%0, %7) @4[%21], @0, @3
  %22:i64 = call potrf_l(%0) @5
"""


def test_all_there_is_comes_back():
    program = parse_program(ALL)
    assert print_program(program) == ALL
    verify(program)


@pytest.mark.parametrize("head", ["program", "program libm", "program reassociates libm"])
def test_what_holds_for_all_of_a_program(head):
    text = f"{head}\nbody\n"
    program = parse_program(text)
    assert print_program(program) == text
    assert program.calls_libm is ("libm" in head)
    assert program.with_body([]).calls_libm is program.calls_libm


def test_parsed_program():
    program = parse_program(ALL)
    assert program.reassociates
    assert program.constants[5] is True
    assert program.constants[6] == 2**64 - 1
    assert math.copysign(1, program.constants[2]) == -1
    assert math.isnan(program.constants[3])
    assert program.lengths == {7: (0, 1)}
    assert program.failures == [
        Failure(IndexError, 'index {0} is "out" # of ä\nbounds'),
        Failure(ShapeError, ""),
        Failure(np.linalg.LinAlgError, "singular"),
    ]
    assert [about.is_once for about in program.buffers] == [
        *(False, True, True),
        *[False] * 3,
    ]
    assert program.results == [Result("input", 0), Result("buffer", 3), Result("output", 1)]
    loop = program.body[2]
    assert isinstance(loop, For)
    assert [type(one) for one in loop.body[-3:]] == [Store] * 3
    assert isinstance(loop.body[0], Load)
    assert loop.body[0].is_guarded
    assert [(one.combiner, one.is_guarded) for one in loop.body[2:]] == [
        ("", False),
        ("add", False),
        ("maximum", True),
        ("", True),
    ]
    branch = program.body[4]
    assert isinstance(branch, If)
    assert branch.otherwise
    loop, call = program.body[6:]
    assert isinstance(loop, For)
    assert isinstance(loop.body[0], Call)
    assert (loop.body[0].operands[0], loop.body[0].out) == (Operand(4, (21,)), None)
    assert isinstance(call, Call)
    assert (call.name, call.sizes, call.operands, call.out) == ("potrf_l", (0,), ((5, ()),), 22)


def test_comments_and_spaces_are_free():
    text = """
    # Nothing.
    program   # One.

    %0 : f64=constant 1.5
    body
            %1:f64   = add %0,%0 # Two.
    # Three.
            %2:f64 = neg %1
    """
    assert print_program(parse_program(dedent(text))) == (
        "program\n%0:f64 = constant 0x1.8000000000000p+0\nbody\n"
        "  %1:f64 = add %0, %0\n  %2:f64 = neg %1\n"
    )


def test_classes_within_classes_are_found():
    program = Program()
    program.failures = [Failure(Outer.InnerError, "no")]
    assert parse_program(print_program(program)).failures == program.failures


class Outer:
    class InnerError(Exception):
        pass


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected 'program', not the end of the text"),
        ("programme", "line 1: expected 'program', not 'programme'"),
        ("program fast", "line 1: expected the end of the line, not 'fast'"),
        ("program\n?", "line 2: unknown character '?'"),
        ("program", "line 1: expected 'body' after this line"),
        ("program\nwhat", "line 2: expected a declaration or 'body', not 'what'"),
        ("program\n%0:f8 = constant 1", "line 2: expected a dtype, not 'f8'"),
        ("program\n%0:f64 = literal 1", "line 2: expected 'constant', not 'literal'"),
        ("program\n%0:f64 = constant one", "line 2: 'one' is not a number of dtype f64"),
        ("program\n%0:i64 = constant 1.5", "line 2: '1.5' is not a number of dtype i64"),
        ("program\n%0:bool = constant 1", "line 2: '1' is not a number of dtype bool"),
        ('program\nfailure 1 ValueError ""', "line 2: expected failure 0"),
        ('program\nfailure 0 NoError ""', "line 2: 'NoError' is not an exception"),
        ('program\nfailure 0 print ""', "line 2: 'print' is not an exception"),
        ('program\nfailure 0 no.such.Error ""', "line 2: 'no.such.Error' is not an exception"),
        (
            "program\nfailure 0 ValueError no",
            "line 2: expected a message in double quotes, not 'no'",
        ),
        ("program\nbuffer @1 input 0 f64[]", "line 2: expected buffer @0"),
        ("program\nbuffer @0 stack 0 f64[]", "line 2: expected a kind of buffer, not 'stack'"),
        ("program\nbuffer @0 input x f64[]", "line 2: expected a number, not 'x'"),
        ("program\nbuffer @0 input 0 f64[%0", "line 2: expected ',', not 'the end of the line'"),
        ("program\nresult array 0", "line 2: expected a kind of result, not 'array'"),
        ("program\nbody\nallocate @0", "line 3: a line of the body must be indented"),
        ("program\nbody\n  free @0", "line 3: expected a statement, not 'free'"),
        ("program\nbody\n  allocate %0", "line 3: expected a buffer, not '%0'"),
        ("program\nbody\n  %0:i64 = neg", "line 3: expected a value, not 'the end of the line'"),
        ("program\nbody\n  store sub @0[] = %0", "line 3: expected a combiner, not 'sub'"),
        ("program\nbody\n    if %0\n  if %0", "line 4: expected an indentation of 4, not 2"),
        (
            "program\nbody\n  for %0:i64 < %1 carrying %2:i64 = %1",
            "line 3: expected a line 'carry' for %2 after the loop",
        ),
        (
            "program\nbody\n  for %0:i64 < %1 carrying %2:i64 = %1\n  carry %3:i64 = %4 <- %0",
            "line 4: expected '%2', not '%4'",
        ),
        ("program\nbody\n  else", "line 3: expected a statement, not 'else'"),
        (
            "program\nbody\n  for %0:i64 < %1\n  choice %2:i64 = %1 | %1",
            "line 4: expected a statement",
        ),
    ],
)
def test_errors_name_the_line(text, message):
    with pytest.raises(ParseError) as caught:
        parse_program(text)
    assert str(caught.value).startswith(message)


def test_the_sign_of_nan_comes_back():
    text = "program\n%0:f64 = constant nan\n%1:f64 = constant -nan\nbody\n"
    program = parse_program(text)
    assert print_program(program) == text
    assert [math.copysign(1, program.constants[value]) for value in (0, 1)] == [1, -1]
