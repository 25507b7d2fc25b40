"""Names that an exported function may have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.runtime.c_compiler import in_c_library

if TYPE_CHECKING:
    from collections.abc import Sequence

_KEYWORDS: Final = re.compile(
    r"auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if"
    r"|inline|int|long|register|restrict|return|short|signed|sizeof|static|struct|switch|typedef"
    r"|union|unsigned|void|volatile|while|alignas|alignof|bool|constexpr|false|nullptr"
    r"|static_assert|thread_local|true|typeof|typeof_unqual|asm|fortran"
)
# The header serves C++ as well.
_KEYWORDS_OF_CPP: Final = re.compile(
    r"and|and_eq|bitand|bitor|catch|char16_t|char32_t|char8_t|class|co_await|co_return|co_yield"
    r"|compl|concept|const_cast|consteval|constinit|decltype|delete|dynamic_cast|explicit|export"
    r"|friend|mutable|namespace|new|noexcept|not|not_eq|operator|or|or_eq|private|protected"
    r"|public|reinterpret_cast|requires|static_cast|template|this|throw|try|typeid|typename|using"
    r"|virtual|wchar_t|xor|xor_eq"
)
# Types and macros of the headers that the generated files and most programs include.
_OF_HEADERS: Final = re.compile(
    r"\w+_t|NULL|EOF|FILE|BUFSIZ|FOPEN_MAX|FILENAME_MAX|L_tmpnam|TMP_MAX|RAND_MAX|EXIT_\w+|SEEK_\w+"
    r"|MB_CUR_MAX|U?INT\w*_(MAX|MIN|C|WIDTH)|(PRI|SCN)[diouxX]\w+"
    r"|(SIZE|PTRDIFF|WCHAR|WINT|SIG_ATOMIC)_(MAX|MIN|WIDTH)|P_tmpdir|offsetof|std(in|out|err)"
    r"|errno|assert|linux|unix|i386"
)
# Other identifiers in the example.
_OF_THE_EXAMPLE: Final = re.compile(
    r"N|capacities|code|details|elements|i|inputs|lengths|main|memory|n|output|output_lengths"
    r"|outputs|sizes|text"
)
# Default libraries of compilers: ``-lc`` in the example's folder would find the export instead.
_LIBRARIES: Final = frozenset(("c", "m", "gcc", "gcc_s", "pthread", "dl", "rt", "System"))


def check_name(name: str, libraries: Sequence[str]) -> None:
    """Raise an exception if a function, and hence its library, must not have a name.

    Parameters
    ----------
    name
        The name.
    libraries
        Further arguments of the linker.

    Raises
    ------
    ValueError
        If the name is not an identifier, or is taken.
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"name must be an identifier of C, not {name!r}")
    if name.startswith("_"):
        raise ValueError(f"name must not begin with _, which C keeps for itself: {name!r}")
    if _KEYWORDS.fullmatch(name) or _KEYWORDS_OF_CPP.fullmatch(name):
        raise ValueError(f"name must not be a word of C or C++: {name!r}")
    if name in _LIBRARIES or f"-l{name}" in libraries:
        raise ValueError(
            f"name must not be that of a library that programs are linked with: {name!r}"
        )
    is_taken = _OF_HEADERS.fullmatch(name) or _OF_THE_EXAMPLE.fullmatch(name)
    if is_taken or any(in_c_library(one) for one in (name, f"{name}_message", f"{name}_exception")):
        raise ValueError(f"name must be unused in C, unlike {name!r}")
