"""Modules of a standalone library: the machine code, its constants and the C function."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.emission.c.function import TABLE, emit_c_module
from pytensor_fuse._native.emission.module import ENTRY
from pytensor_fuse._native.program.external.routines import ROUTINES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.emission.c.function import CInterface
    from pytensor_fuse._native.emission.module import Module

# A function of BLAS or LAPACK. Its linker name has an underscore that Fortran compilers append.
_FORTRAN: Final = re.compile(r'@"?(?:blas|lapack)\.(\w+)"?')
# A declaration or call of such a function, with its arguments.
_USED: Final = re.compile(rf"{_FORTRAN.pattern}\(([^()]*)\)")
# The number of character arguments of each function, by its symbol.
_N_CHARACTERS: Final = {
    routine.symbol(dtype): sum(argument[0] == "'" for argument in routine.arguments)
    for routine in ROUTINES.values()
    for dtype in ("f32", "f64")
}
# In bytes: arrays are aligned to cache lines.
_ALIGNMENT: Final = 64


def linked_name(symbol: str) -> str | None:
    """Return the linker name of a function of BLAS or LAPACK; None for other symbols."""
    found = _FORTRAN.fullmatch(f"@{symbol}")
    return None if found is None else f"{found[1]}_"


def library_modules(
    symbol: str,
    interface: CInterface,
    module: Module,
    constants: Sequence[bytes],
    bound: Sequence[bytes],
) -> dict[str, str]:
    """Return the modules of a library that exports only its C function, as LLVM text by part.

    Parameters
    ----------
    symbol
        The function's name, a C identifier.
    interface
        The inputs and outputs of the machine code.
    module
        The machine code. The linker must be able to resolve all of its externals.
    constants, bound
        The bytes of its constants and of its bound inputs.
    """
    entry = f"define i64 @{ENTRY}("
    if module.text.count(entry) != 1:
        raise AssertionError("a module has one function that is called from outside")
    code = module.text.replace(entry, f"define hidden i64 @{symbol}.{ENTRY}(")
    table = "\n".join(
        [
            f"declare hidden i64 @{symbol}.{ENTRY}(ptr, ptr, ptr, ptr)",
            f"@{symbol}.constants = external hidden constant [{len(constants)} x ptr]",
            f"@{symbol}.bound = external hidden constant [{len(bound)} x ptr]",
            f"@{TABLE} = internal constant [3 x ptr] "
            f"[ptr @{symbol}.{ENTRY}, ptr @{symbol}.constants, ptr @{symbol}.bound]",
        ]
    )
    return {
        "code": _USED.sub(_as_fortran, code),
        "data": _data_module({f"{symbol}.constants": constants, f"{symbol}.bound": bound}),
        "function": emit_c_module(interface, symbol, table=table),
    }


def _as_fortran(used: re.Match[str]) -> str:
    """Return a declaration or call of a function in Fortran's calling convention.

    Fortran compilers append the length of each character argument. The original code omits these
    lengths, because SciPy's functions, which it calls in a Python process, do not take them.
    """
    symbol = used[0].partition("(")[0].removeprefix("@").strip('"')
    is_call = "%" in used[2]
    length = "i64 1" if is_call else "i64"
    arguments = [used[2]] if used[2] else []
    arguments += [length] * _N_CHARACTERS.get(symbol, 0)
    return f"@{used[1]}_({', '.join(arguments)})"


def _data_module(arrays: dict[str, Sequence[bytes]]) -> str:
    lines = []
    for name, members in arrays.items():
        for number, member in enumerate(members):
            lines.append(
                f"@{name}.{number} = internal constant [{len(member)} x i8] "
                f'c"{_escaped(member)}", align {_ALIGNMENT}'
            )
        addresses = ", ".join([f"ptr @{name}.{number}" for number in range(len(members))])
        lines.append(f"@{name} = hidden constant [{len(members)} x ptr] [{addresses}]")
    return "\n".join([*lines, ""])


def _escaped(data: bytes) -> str:
    """Return bytes in the syntax of LLVM strings: a backslash and two hexadecimal digits each."""
    return "\\" * bool(data) + data.hex("\\").upper()
