"""Text format of programs.

The declarations come first, then the body; blocks are indented, and ``#`` begins a comment::

    program
    %0:i64 = length @0, 0
    %1:f64 = constant 0x0.0p+0
    failure 0 IndexError "index {0} is out of bounds"
    buffer @0 input 0 f64[%0] once
    buffer @1 output 0 f64[] once
    result buffer @1
    body
      for %2:i64 < %0
        %3:f64 = load @0[%2]
        %4:f64 = mul %3, %3
      reduce %5:f64 = add %1, %4
      allocate @1
      store @1[] = %5

A value's dtype is given where it is defined. ``program reassociates`` allows sums in any order, and
``libm`` after that selects the mathematical functions that Numba calls. A loop with carries
declares their inner and initial values in its head, ``for %2:i64 < %0 carrying %6:f64 = %1``, and
their following values after the body: ``carry %7:f64 = %6 <- %8``, where ``%7`` is defined after
the loop. A line ``until %9`` after the body names the value that ends the loop. A branch is ``if
%9``, ``else`` unless that side is empty, and ``choice %10:f64 = %11 | %12``. Other statements are
``store add @1[%2] = %3`` with a combiner, ``load guarded`` and ``store guarded``, ``check %9 else
0(%2)`` for failure 0 with its details, and ``call matmul_nn(%0, %1, %2) @3, @1, @2[%9]`` for a
routine with its sizes and operands. A routine of LAPACK defines a value: ``%5:i64 = call
potrf_u(%0) @3``. ``%6:f64 = draw gamma(%1, %2) @4`` draws a random number. Floats are written in
hexadecimal, or as ``inf``, ``-inf``, ``nan`` and ``-nan``.

The text is complete: two programs have the same text only if they are equal.
`pytensor_fuse._native.program.parse` parses it.
"""

from __future__ import annotations

import json
import math
import operator
from typing import TYPE_CHECKING

from pytensor_fuse._native.program.model import Call, Check, Draw, For, If, Load, Op, Store

if TYPE_CHECKING:
    from pytensor_fuse._native.program.model import Buffer, Program, Statement


def print_program(program: Program) -> str:
    """Return the text of a program.

    Parameters
    ----------
    program
        The program, which must be valid: the dtype of a value that is never defined is not printed.

    Returns
    -------
    str
        The text, which `parse_program` reads.
    """
    names = [f"%{value}" for value in range(len(program.dtypes))]
    definitions = [f"%{value}:{dtype}" for value, dtype in enumerate(program.dtypes)]
    head = ["program"]
    head += ["reassociates"] if program.reassociates else []
    head += ["libm"] if program.calls_libm else []
    lines = [" ".join(head)]
    lines.extend(
        f"{definitions[value]} = constant {print_number(program.constants[value])}"
        for value in sorted(program.constants, key=operator.index)
    )
    for value in sorted(program.lengths, key=operator.index):
        buffer, axis = program.lengths[value]
        lines.append(f"{definitions[value]} = length @{buffer}, {axis}")
    for number, failure in enumerate(program.failures):
        exception = _dotted_name(failure.exception)
        lines.append(f"failure {number} {exception} {json.dumps(failure.message)}")
    for number, about in enumerate(program.buffers):
        lines.append(f"buffer @{number} {_print_buffer(about)}")
    for result in program.results:
        mark = "@" if result.kind == "buffer" else ""
        lines.append(f"result {result.kind} {mark}{result.number}")
    lines.append("body")
    _print_block(program.body, "  ", lines, names, definitions)
    lines.append("")
    return "\n".join(lines)


def print_number(number: bool | int | float) -> str:
    """Return the text of a literal."""
    if isinstance(number, bool):
        return "true" if number else "false"
    if isinstance(number, float):
        # `hex` omits the sign of NaN, which is part of its bits.
        sign = "-" if math.isnan(number) and math.copysign(1.0, number) < 0 else ""
        return sign + number.hex()
    return str(number)


def _dotted_name(exception: type[BaseException]) -> str:
    if exception.__module__ == "builtins":
        return exception.__qualname__
    return f"{exception.__module__}.{exception.__qualname__}"


def _print_buffer(about: Buffer) -> str:
    lengths = ", ".join([f"%{length}" for length in about.lengths])
    once = " once" if about.is_once else ""
    return f"{about.kind} {about.position} {about.dtype}[{lengths}]{once}"


# A program's text is the cache key of its machine code, so this runs for each compiled program: the
# frequent statements come first and call no other function.
def _print_block(
    block: list[Statement], indent: str, lines: list[str], names: list[str], definitions: list[str]
) -> None:
    for statement in block:
        if isinstance(statement, Op):
            args = ", ".join([names[arg] for arg in statement.args])
            lines.append(f"{indent}{definitions[statement.out]} = {statement.name} {args}")
        elif isinstance(statement, Load):
            index = ", ".join([names[at] for at in statement.index])
            guarded = "guarded " if statement.is_guarded else ""
            lines.append(
                f"{indent}{definitions[statement.out]} = load {guarded}@{statement.buffer}[{index}]"
            )
        elif isinstance(statement, Store):
            index = ", ".join([names[at] for at in statement.index])
            guarded = "guarded " if statement.is_guarded else ""
            combiner = f"{statement.combiner} " if statement.combiner else ""
            lines.append(
                f"{indent}store {guarded}{combiner}@{statement.buffer}[{index}]"
                f" = {names[statement.value]}"
            )
        elif isinstance(statement, For):
            _print_loop(statement, indent, lines, names, definitions)
        elif isinstance(statement, If):
            lines.append(f"{indent}if {names[statement.condition]}")
            _print_block(statement.then, indent + "  ", lines, names, definitions)
            if statement.otherwise:
                lines.append(f"{indent}else")
                _print_block(statement.otherwise, indent + "  ", lines, names, definitions)
            for out, then, otherwise in statement.choices:
                lines.append(
                    f"{indent}choice {definitions[out]} = {names[then]} | {names[otherwise]}"
                )
        elif isinstance(statement, Check):
            details = ", ".join([names[detail] for detail in statement.details])
            lines.append(
                f"{indent}check {names[statement.condition]} else {statement.failure}"
                + (f"({details})" if details else "")
            )
        elif isinstance(statement, Call):
            lines.append(indent + _print_call(statement, names, definitions))
        elif isinstance(statement, Draw):
            args = ", ".join([names[arg] for arg in statement.args])
            drawn = f"draw {statement.name}({args}) @{statement.generator}"
            lines.append(f"{indent}{definitions[statement.out]} = {drawn}")
        else:
            lines.append(f"{indent}allocate @{statement.buffer}")


def _print_call(call: Call, names: list[str], definitions: list[str]) -> str:
    sizes = ", ".join([names[size] for size in call.sizes])
    operands = []
    for buffer, prefix in call.operands:
        at = ", ".join([names[one] for one in prefix])
        operands.append(f"@{buffer}[{at}]" if prefix else f"@{buffer}")
    defines = "" if call.out is None else f"{definitions[call.out]} = "
    return f"{defines}call {call.name}({sizes}) {', '.join(operands)}"


def _print_loop(
    loop: For, indent: str, lines: list[str], names: list[str], definitions: list[str]
) -> None:
    carrying = ", ".join(
        [f"{definitions[carry.inner]} = {names[carry.initial]}" for carry in loop.carries]
    )
    lines.append(
        f"{indent}for {definitions[loop.index]} < {names[loop.extent]}"
        + (f" carrying {carrying}" if carrying else "")
    )
    _print_block(loop.body, indent + "  ", lines, names, definitions)
    if loop.until is not None:
        lines.append(f"{indent}until {names[loop.until]}")
    for out, combiner, initial, term in loop.reductions:
        lines.append(
            f"{indent}reduce {definitions[out]} = {combiner} {names[initial]}, {names[term]}"
        )
    lines.extend(
        f"{indent}carry {definitions[carry.out]} = {names[carry.inner]} <- {names[carry.following]}"
        for carry in loop.carries
    )
