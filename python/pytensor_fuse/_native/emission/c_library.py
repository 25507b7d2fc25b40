"""The modules of a library that needs no Python: machine code, its constants, the C function."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pytensor_fuse._native.emission.c_function import TABLE, emit_c_module
from pytensor_fuse._native.emission.module import ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor_fuse._native.emission.c_function import CInterface
    from pytensor_fuse._native.emission.module import Module

# Functions by the names that linkers know them by: Fortran's compilers add the last character.
_FORTRAN: Final = re.compile(r'@"?(?:blas|lapack)\.(\w+)"?')
# In bytes: what the code reads starts at the lines of caches.
_ALIGNMENT: Final = 64


class LibraryModules(NamedTuple):
    """LLVM's text of the parts of a library.

    Attributes
    ----------
    code
        The machine code.
    data
        Its constants, and the inputs that are bound.
    function
        The function of C.
    """

    code: str
    data: str
    function: str


def unserved_externals(externals: Iterable[str]) -> list[str]:
    """Return the symbols of which there is nothing that a linker finds."""
    return [one for one in externals if not _FORTRAN.fullmatch(f"@{one}")]


def library_modules(
    symbol: str,
    interface: CInterface,
    module: Module,
    constants: Sequence[bytes],
    bound: Sequence[bytes],
) -> LibraryModules:
    """Return the modules of a library, of which only the function of C is seen from outside.

    Parameters
    ----------
    symbol
        The function's name, an identifier of C.
    interface
        What the machine code takes and gives.
    module
        The machine code. The linker has to find all that it needs from outside.
    constants, bound
        The bytes of its constants, and of the inputs that are bound.
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
    return LibraryModules(
        _FORTRAN.sub(r"@\1_", code),
        _data_module({f"{symbol}.constants": constants, f"{symbol}.bound": bound}),
        emit_c_module(interface, symbol, table=table),
    )


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
    """Return bytes as LLVM's text has them in strings: a backslash and two digits for each."""
    digits = np.frombuffer(b"0123456789ABCDEF", "u1")
    numbers = np.frombuffer(data, "u1")
    out = np.full((numbers.size, 3), ord("\\"), "u1")
    out[:, 1] = digits[numbers >> 4]
    out[:, 2] = digits[numbers & 15]
    return out.tobytes().decode("ascii")
