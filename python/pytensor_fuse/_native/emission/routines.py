"""Calls of BLAS and LAPACK routines, in Fortran's calling convention.

Fortran passes all arguments by reference, so sizes are stored as 32-bit integers in memory, and so
are options and factors. The module has a wrapper for each routine and dtype, which takes addresses
and sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.emission.types import REGISTER, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.emission.writer import Writer
    from pytensor_fuse._native.program.external.routines import Routine


def emit_call(
    writer: Writer, routine: Routine, dtype: str, operands: Sequence[str], sizes: Sequence[str]
) -> str:
    """Write a call of a routine, and return the operand of its ``info``.

    Parameters
    ----------
    writer
        The writer of the function.
    routine
        The routine.
    dtype
        The dtype of its elements.
    operands
        The addresses of its arrays.
    sizes
        Its sizes.
    """
    symbol = f"routine.{routine.name}.{dtype}"
    writer.define(symbol, lambda: _definition(writer, routine, symbol, dtype))
    given = [f"ptr {one}" for one in operands] + [f"i64 {one}" for one in sizes]
    return writer.let(f"call i64 @{symbol}({', '.join(given)})")


def _definition(writer: Writer, routine: Routine, symbol: str, dtype: str) -> str:
    function = routine.symbol(dtype)
    kinds = ", ".join(["ptr"] * len(routine.arguments))
    writer.declare_external(function, f"declare void @{function}({kinds})")
    names = {role.name for role in routine.operands}
    params = [f"ptr %{role.name}" for role in routine.operands]
    params += [f"i64 %{size}" for size in routine.sizes]
    lines = [f"define internal i64 @{symbol}({', '.join(params)}) noinline {{"]
    given = []
    for number, argument in enumerate(routine.arguments):
        if argument in names:
            given.append(f"ptr %{argument}")
            continue
        kind, value, before = _stored(routine, argument, number, dtype)
        place = f"%at{number}"
        lines += [f"  {line}" for line in before]
        lines.append(f"  {place} = alloca {kind}")
        lines.append(f"  store {kind} {value}, ptr {place}")
        given.append(f"ptr {place}")
    lines.append(f"  call void @{function}({', '.join(given)})")
    if not routine.reports:
        return "\n".join([*lines, "  ret i64 0", "}"])
    place = f"%at{routine.arguments.index('info')}"
    lines.append(f"  %short = load i32, ptr {place}")
    lines.append("  %report = sext i32 %short to i64")
    return "\n".join([*lines, "  ret i64 %report", "}"])


def _stored(routine: Routine, argument: str, number: int, dtype: str) -> tuple[str, str, list[str]]:
    """Return the type and value of an argument in memory, and the lines that compute the value."""
    if argument == "info":
        return "i32", "0", []
    if argument[0] == "'":
        return "i8", str(ord(argument[1])), []
    if argument[0] in routine.sizes:
        short = f"%i{number}"
        lines = [f"{short} = trunc i64 %{argument[0]} to i32"]
        if argument.endswith("'"):
            lines.append(f"%none{number} = icmp slt i32 {short}, 1")
            lines.append(f"%m{number} = select i1 %none{number}, i32 1, i32 {short}")
            short = f"%m{number}"
        return "i32", short, lines
    if "." in argument:
        return REGISTER[dtype], literal(dtype, float(argument)), []
    return "i32", argument, []
