"""Verification of a program's declarations: literals, lengths, buffers, failures and results."""

from __future__ import annotations

import operator
import struct
from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.program.errors import ProgramError
from pytensor_fuse._native.program.model import DTYPES
from pytensor_fuse._native.program.operations import RANGES

if TYPE_CHECKING:
    from pytensor_fuse._native.program.model import Buffer, BufferId, Program, Value

# The kinds of buffers that the caller passes.
_GIVEN: Final = ("input", "constant")


def verify_declarations(program: Program) -> None:
    """Check the declarations, which precede the body of a program.

    Raises
    ------
    ProgramError
        A rule is broken.
    """
    for value, dtype in enumerate(program.dtypes):
        if dtype not in DTYPES and dtype:
            raise ProgramError(
                f"%{value} is of dtype {dtype!r}, which does not exist (rule: dtypes)"
            )
    for value in program.constants:
        _verify_constant(program, value)
    for value in program.lengths:
        _verify_length(program, value)
    taken: dict[tuple[str, int], BufferId] = {}
    for number, about in enumerate(program.buffers):
        _verify_buffer(program, number, about)
        if about.kind != "temporary":
            other = taken.setdefault((about.kind, about.position), number)
            if other != number:
                raise ProgramError(
                    f"@{number} is {about.kind} {about.position}, as @{other} is (rule: buffers)"
                )
    for number, failure in enumerate(program.failures):
        if not issubclass(failure.exception, BaseException):
            raise ProgramError(f"failure {number} raises no exception (rule: failures)")
    _verify_results(program)


def _is_value(program: Program, value: Value) -> bool:
    return 0 <= operator.index(value) < len(program.dtypes)


def _verify_constant(program: Program, value: Value) -> None:
    if not _is_value(program, value):
        raise ProgramError(f"%{value} is beyond the last value (rule: dense ids)")
    number, dtype = program.constants[value], program.dtypes[value]
    of = bool if dtype == "bool" else float if dtype[:1] == "f" else int
    if type(number) is not of:
        raise ProgramError(f"%{value} is {number!r}, which is no {dtype} (rule: literals)")
    if dtype == "f32" and not _is_single(float(number)):
        raise ProgramError(f"%{value} is {number!r}, which f32 rounds (rule: literals)")
    if of is int and number not in RANGES[dtype]:
        raise ProgramError(f"%{value} is {number!r}, beyond {dtype} (rule: literals)")


def _is_single(number: float) -> bool:
    if number != number:
        return True
    try:
        rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return False
    return rounded == number


def _verify_length(program: Program, value: Value) -> None:
    if not _is_value(program, value):
        raise ProgramError(f"%{value} is beyond the last value (rule: dense ids)")
    buffer, axis = program.lengths[value]
    if program.dtypes[value] != "i64":
        raise ProgramError(f"%{value} is a length and not i64 (rule: dtypes)")
    if not 0 <= buffer < len(program.buffers):
        raise ProgramError(
            f"%{value} is a length of @{buffer}, which does not exist (rule: lengths)"
        )
    about = program.buffers[buffer]
    if about.kind not in _GIVEN:
        raise ProgramError(
            f"%{value} is a length of @{buffer}, which the caller does not give (rule: lengths)"
        )
    if not 0 <= axis < len(about.lengths):
        raise ProgramError(f"%{value} is a length of an axis that @{buffer} lacks (rule: lengths)")


def _verify_buffer(program: Program, number: BufferId, about: Buffer) -> None:
    name = f"@{number}"
    if about.kind not in (*_GIVEN, "temporary", "output"):
        raise ProgramError(
            f"{name} is of kind {about.kind!r}, which does not exist (rule: buffers)"
        )
    if about.position < 0 or (about.kind == "temporary" and about.position):
        raise ProgramError(f"{name} has position {about.position} (rule: buffers)")
    if about.dtype not in DTYPES:
        raise ProgramError(
            f"{name} is of dtype {about.dtype!r}, which does not exist (rule: dtypes)"
        )
    for length in about.lengths:
        if not _is_value(program, length):
            raise ProgramError(f"{name} has length %{length}, which does not exist (rule: lengths)")
        if program.dtypes[length] != "i64":
            raise ProgramError(f"{name} has length %{length}, which is not i64 (rule: lengths)")
        if program.constants.get(length, 0) < 0:
            raise ProgramError(f"{name} has length %{length}, which is negative (rule: lengths)")
        if about.kind in _GIVEN and not (length in program.constants or length in program.lengths):
            raise ProgramError(
                f"{name} is given by the caller and has length %{length}, which is computed"
                " (rule: lengths)"
            )


def _verify_results(program: Program) -> None:
    inputs = {about.position for about in program.buffers if about.kind == "input"}
    returned: set[BufferId] = set()
    for position, (kind, number) in enumerate(program.results):
        name = f"result {position}"
        if kind == "buffer":
            if not 0 <= number < len(program.buffers):
                raise ProgramError(f"{name} is @{number}, which does not exist (rule: results)")
            about = program.buffers[number]
            if about.kind != "output" or about.position != position:
                raise ProgramError(
                    f"{name} is @{number}, which is {about.kind} {about.position} (rule: results)"
                )
            returned.add(number)
        elif kind == "input":
            if number not in inputs:
                raise ProgramError(
                    f"{name} is input {number}, of which there is no buffer (rule: results)"
                )
        elif kind != "output":
            raise ProgramError(f"{name} is of kind {kind!r}, which does not exist (rule: results)")
        elif not 0 <= number < position:
            raise ProgramError(f"{name} is output {number}, not an earlier one (rule: results)")
    for buffer, about in enumerate(program.buffers):
        if about.kind == "output" and buffer not in returned:
            raise ProgramError(
                f"@{buffer} is output {about.position}, not returned (rule: results)"
            )
