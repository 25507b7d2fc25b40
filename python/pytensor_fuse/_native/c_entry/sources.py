"""The files in C of an exported function: its header, the messages of its failures, an example."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pytensor_fuse._native.emission.c_support import (
    DOES_NOT_FIT,
    N_DETAILS,
    NEGATIVE_LENGTH,
    NO_MEMORY,
    WRONG_LENGTH,
)
from pytensor_fuse._native.program.failures import filled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.c_entry.function import CArray
    from pytensor_fuse._native.program.model import Failure

# How C calls the elements of each dtype.
_TYPES: Final = {"float64": "double", "float32": "float", "bool": "uint8_t"}
# What the example calls something else.
TAKEN: Final = frozenset(
    (
        *("N", "capacities", "code", "details", "elements", "i", "inputs", "lengths", "main"),
        *("memory", "n", "output", "output_lengths", "outputs", "sizes", "text"),
    )
)
# What stands for a detail of a failure while the rest of a message is escaped.
_DETAIL: Final = re.compile("\0(\\d)")


class CDescription(NamedTuple):
    """What the files say of an exported function.

    Attributes
    ----------
    name
        Its name, an identifier of C.
    inputs, outputs
        What it takes and gives.
    failures
        What the positive numbers stand for that it returns.
    machine
        For which machine its code is.
    version
        The version of this package.
    """

    name: str
    inputs: tuple[CArray, ...]
    outputs: tuple[CArray, ...]
    failures: tuple[Failure, ...]
    machine: str
    version: str


def header(about: CDescription) -> str:
    """Return the text of the header."""
    name, big = about.name, about.name.upper()
    n_lengths, n_output_lengths = (
        sum(len(one.shape) for one in arrays) for arrays in (about.inputs, about.outputs)
    )
    return f"""\
/* {name}: a compiled function of PyTensor, written by pytensor_fuse {about.version}.

   The library is for {about.machine}, and needs no Python.

   Inputs, with the places of their lengths among all:
{_listed(about.inputs)}
   Outputs, likewise:
{_listed(about.outputs)}
   A length that is ? is known only when the function is called. */

#ifndef {big}_H
#define {big}_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

#define {big}_N_INPUTS {len(about.inputs)}
#define {big}_N_LENGTHS {n_lengths}
#define {big}_N_OUTPUTS {len(about.outputs)}
#define {big}_N_OUTPUT_LENGTHS {n_output_lengths}
#define {big}_N_DETAILS {N_DETAILS}

/* What the function returns besides 0 and the numbers of its own failures, which are positive. */
#define {big}_NO_MEMORY ({NO_MEMORY})
#define {big}_DOES_NOT_FIT ({DOES_NOT_FIT})
#define {big}_WRONG_LENGTH ({WRONG_LENGTH})
#define {big}_NEGATIVE_LENGTH ({NEGATIVE_LENGTH})

/* Computes the outputs. Any number of threads may call it at once.

   inputs          the address of each input's elements: an array that is C-contiguous and aligned.
                   Nothing is written to it.
   lengths         the lengths of all axes of all inputs, one input after the other.
   outputs         the address of memory for each output, aligned and apart from all other arrays.
   capacities      how many elements have room there.
   output_lengths  where the lengths of all axes of all outputs are written, or NULL.
   details         where {N_DETAILS} numbers are written that tell of a failure, or NULL.

   Returns 0 if all went well, and a code otherwise. Outputs may have been written to by then.

   {big}_NO_MEMORY: there is no memory for what lies between inputs and outputs.
   {big}_DOES_NOT_FIT: output details[0] has details[1] elements, more than have room there; its
       lengths have been written.
   {big}_WRONG_LENGTH: axis details[1] of input details[0] has length details[3], which is negative
       or should be details[2].
   {big}_NEGATIVE_LENGTH: axis details[1] of output details[0] would have length details[2].
   A positive number: {name}_message says what went wrong. */
int64_t {name}(const void *const *inputs, const int64_t *lengths, void *const *outputs,
{" " * (len(name) + 9)}const int64_t *capacities, int64_t *output_lengths, int64_t *details);

/* Writes what a code means, at most size - 1 characters and a 0; returns how long the text is.

   details may be NULL; the text then has zeros for the numbers. */
size_t {name}_message(int64_t code, const int64_t *details, char *text, size_t size);

/* Returns the name of the exception that Python would raise for a code. */
const char *{name}_exception(int64_t code);

#ifdef __cplusplus
}}
#endif

#endif
"""


def messages(about: CDescription) -> str:
    """Return the text of the functions that tell of failures."""
    name, big = about.name, about.name.upper()
    told = [
        ("0", "", "no failure"),
        (f"{big}_NO_MEMORY", "MemoryError", "there is no memory for intermediate results"),
        (
            f"{big}_DOES_NOT_FIT",
            "ValueError",
            "output {0} has {1} elements, for which there is no room",
        ),
        (f"{big}_NEGATIVE_LENGTH", "ValueError", "output {0}: axis {1} would have length {2}"),
        *[
            (str(number), failure.exception.__name__, failure.message)
            for number, failure in enumerate(about.failures, 1)
        ],
    ]
    wrong = "input {0}: axis {1} must have length {2}, not {3}"
    negative = "input {0}: axis {1} must not be negative"
    cases = "\n".join([f"    case {code}:\n        {_written(text)}" for code, _, text in told])
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
    switch (code) {{
{cases}
    case {big}_WRONG_LENGTH:
        if (d[2] < 0)
            {_written(negative)}
        {_written(wrong)}
    default:
        {_written("there is no such code")}
    }}
}}

const char *{name}_exception(int64_t code)
{{
    switch (code) {{
{classes}
    case {big}_WRONG_LENGTH:
        return "ValueError";
    default:
        return "";
    }}
}}
"""


def example(about: CDescription) -> str:
    """Return the text of a program that calls the function and prints what it gives."""
    name, big = about.name, about.name.upper()
    filled_in = "\n".join([_filled_in(number, one) for number, one in enumerate(about.inputs)])
    memory = "\n".join([_memory(number, one) for number, one in enumerate(about.outputs)])
    freed = [f"    free((void *)inputs[{number}]);" for number in range(len(about.inputs))]
    freed += [f"    free(outputs[{number}]);" for number in range(len(about.outputs))]
    end = "\n".join(freed)
    lengths = ", ".join([_length(length) for one in about.inputs for length in one.shape]) or "0"
    sizes = ", ".join([f"sizeof({_type(one)})" for one in about.outputs]) or "0"
    printed, first = [], 0
    for number, one in enumerate(about.outputs):
        printed.append(_printed(number, one, first))
        first += len(one.shape)
    shown = "\n".join(printed)
    return f"""\
/* Calls {name} on arrays of simple numbers and prints what it gives. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "{name}.h"

/* Stands for each length that is known only when the function is called. */
#define N 3

static void *memory(int64_t n, size_t size)
{{
    /* Never of no bytes, for which some libraries give NULL. */
    void *found = malloc((size_t)n * size + 1);
    if (!found) {{
        fprintf(stderr, "there is no memory\\n");
        exit(1);
    }}
    return found;
}}

int main(void)
{{
    const int64_t lengths[] = {{{lengths}}};
    const size_t sizes[] = {{{sizes}}};
    const void *inputs[{big}_N_INPUTS + 1] = {{NULL}};
    void *outputs[{big}_N_OUTPUTS + 1] = {{NULL}};
    int64_t capacities[{big}_N_OUTPUTS + 1] = {{0}};
    int64_t output_lengths[{big}_N_OUTPUT_LENGTHS + 1];
    int64_t details[{big}_N_DETAILS];
    int64_t code;

{filled_in}
{memory}
    /* Where a capacity is a guess, the function says how many elements there are. */
    while ((code = {name}(inputs, lengths, outputs, capacities, output_lengths, details))
           == {big}_DOES_NOT_FIT) {{
        int64_t output = details[0];
        free(outputs[output]);
        capacities[output] = details[1];
        outputs[output] = memory(capacities[output], sizes[output]);
    }}
    if (code != 0) {{
        char text[1000];
        {name}_message(code, details, text, sizeof text);
        fprintf(stderr, "%s: %s\\n", {name}_exception(code), text);
        return 1;
    }}
{shown}
{end}
    return 0;
}}
"""


def makefile(name: str, rpath: str) -> str:
    """Return the text of a file for make that builds the example.

    Parameters
    ----------
    name
        That of the function.
    rpath
        How the linker calls the directory of the program.
    """
    told = rpath.replace("$", "$$")
    return f"""\
# make && ./example

CFLAGS = -O2

example: example.c {name}.h
\t$(CC) $(CFLAGS) example.c -o $@ -L. -l{name} -Wl,-rpath,'{told}'

.PHONY: clean
clean:
\trm -f example
"""


def _type(about: CArray) -> str:
    return _TYPES.get(about.dtype, f"{about.dtype}_t")


def _length(length: int | None) -> str:
    return "N" if length is None else str(max(length, 0))


def _size(about: CArray) -> str:
    return " * ".join(["(int64_t)1", *map(_length, about.shape)])


def _listed(arrays: Sequence[CArray]) -> str:
    lines, first = [], 0
    for number, one in enumerate(arrays):
        lengths = "".join([f"[{'?' if length is None else length}]" for length in one.shape])
        last = first + len(one.shape) - 1
        places = "" if last < first else f", lengths {first}"
        places += f" to {last}" if last > first else ""
        # A name may be any text, but must not end the comment.
        name = "" if one.name is None else f" ({_plain(one.name)})"
        lines.append(f"     {number}{name}: {_type(one)}{lengths}{places}")
        first += len(one.shape)
    return "\n".join(lines or ["     none"])


def _plain(text: str) -> str:
    return re.sub(r"[^\w .,:+\-()\[\]]", "_", text, flags=re.ASCII)


def _quoted(text: str) -> str:
    """Return a text as a literal of C, in UTF-8."""
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
    # What has no detail is text, and no format.
    return f'return (size_t)snprintf(text, size, "{form}"{numbers});'


def _filled_in(number: int, about: CArray) -> str:
    kind = _type(about)
    value = (
        f"({kind})(i % 2)" if np.dtype(about.dtype).kind != "f" else f"({kind})1 / ({kind})(i + 1)"
    )
    return f"""\
    {{
        int64_t n = {_size(about)};
        {kind} *elements = memory(n, sizeof *elements);
        for (int64_t i = 0; i < n; i++)
            elements[i] = {value};
        inputs[{number}] = elements;
    }}"""


def _memory(number: int, about: CArray) -> str:
    return f"""\
    capacities[{number}] = {_size(about)};
    outputs[{number}] = memory(capacities[{number}], sizes[{number}]);"""


def _printed(number: int, about: CArray, first: int) -> str:
    kind, of = _type(about), np.dtype(about.dtype).kind
    form, cast = {
        "f": ('%.17g"', "(double)"),
        "i": ('%" PRId64', "(int64_t)"),
    }.get(of, ('%" PRIu64', "(uint64_t)"))
    shape = '[%" PRId64 "]' * len(about.shape)
    lengths = [f"output_lengths[{first + axis}]" for axis in range(len(about.shape))]
    given = "".join([f", {one}" for one in lengths])
    size = " * ".join(["(int64_t)1", *lengths])
    return f"""\
    {{
        const {kind} *elements = outputs[{number}];
        int64_t n = {size};
        printf("output {number}: {kind}{shape}"{given});
        for (int64_t i = 0; i < n; i++)
            printf(" {form}, {cast}elements[i]);
        printf("\\n");
    }}"""
