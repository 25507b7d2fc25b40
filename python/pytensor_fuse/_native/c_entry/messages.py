"""C functions that describe the failures of an exported function."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.emission.c.support import (
    DOES_NOT_FIT,
    N_DETAILS,
    NEGATIVE_LENGTH,
    NO_MEMORY,
    WRONG_LENGTH,
)
from pytensor_fuse._native.program.failures import filled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.program.model import Failure

# The name, exception and message of each code that is no failure of the program itself. The last
# message starts with NumPy's words where PyTensor's function would allocate the output.
OWN_FAILURES: Final[dict[int, tuple[str, type[Exception], str]]] = {
    NO_MEMORY: ("NO_MEMORY", MemoryError, "there is no memory for intermediate results"),
    DOES_NOT_FIT: (
        "DOES_NOT_FIT",
        ValueError,
        "output {0} has {1} elements, for which there is not enough memory",
    ),
    WRONG_LENGTH: ("WRONG_LENGTH", ValueError, "input {0}: axis {1} must have length {2}, not {3}"),
    NEGATIVE_LENGTH: (
        "NEGATIVE_LENGTH",
        ValueError,
        "negative dimensions are not allowed: axis {1} of output {0} would have length {2}",
    ),
}
# The message of `WRONG_LENGTH` if the stated length is negative, because any other is accepted.
NEGATIVE_INPUT: Final = "input {0}: axis {1} must not be negative"
# This mark stands for a detail of a failure while the rest of the message is escaped.
_DETAIL: Final = re.compile("\0(\\d)")


def messages(name: str, failures: Sequence[Failure]) -> str:
    """Return the C source of the functions that describe the failures of a function."""
    big = name.upper()
    told = [
        ("0", "", _written("no failure")),
        *[
            (f"{big}_{code}", exception.__name__, _written(message))
            for code, exception, message in OWN_FAILURES.values()
        ],
        *[
            (str(number), failure.exception.__name__, _written(failure.message))
            for number, failure in enumerate(failures, 1)
        ],
    ]
    cases = "\n".join([f"    case {code}:\n        {writes}" for code, _, writes in told])
    classes = "\n".join(
        [f"    case {code}:\n        return {_quoted(class_)};" for code, class_, _ in told]
    )
    return f"""\
#include <inttypes.h>
#include <stdio.h>
#include "{name}.h"

size_t {name}_message(int64_t code, const int64_t *details, char *text, size_t size)
{{
    static const int64_t zeros[{N_DETAILS}] = {{0}};
    const int64_t *d = details ? details : zeros;
    if (code == {big}_WRONG_LENGTH && d[2] < 0)
        {_written(NEGATIVE_INPUT)}
    switch (code) {{
{cases}
    default:
        {_written("there is no such code")}
    }}
}}

const char *{name}_exception(int64_t code)
{{
    switch (code) {{
{classes}
    default:
        return "";
    }}
}}
"""


def _quoted(text: str) -> str:
    """Return a text as a C string literal, in UTF-8."""
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    plain = re.compile(rb"[\w !#$%&'()*+,\-./:;<=>@\[\]^`{|}~]", re.ASCII)
    return "".join(
        [chr(byte) if plain.fullmatch(bytes([byte])) else f"\\{byte:03o}" for byte in text.encode()]
    )


def _written(message: str) -> str:
    """Return the statement that writes a message and returns its length."""
    marked = filled(message.replace("%", "%%"), N_DETAILS, "\0{}".format)
    parts = _DETAIL.split(marked)
    form = '" PRId64 "'.join([f"{_escaped(one)}%" for one in parts[:-1:2]] + [_escaped(parts[-1])])
    numbers = "".join([f", d[{one}]" for one in parts[1::2]])
    # The message goes through snprintf in either case, so percent signs are doubled.
    return f'return (size_t)snprintf(text, size, "{form}"{numbers});'
