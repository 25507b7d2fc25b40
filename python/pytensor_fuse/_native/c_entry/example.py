"""Example program in C that calls an exported function, and its makefile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.c_entry.function import CArray


def example(name: str, inputs: Sequence[CArray], outputs: Sequence[CArray]) -> str:
    """Return the C source of a program that calls a function and prints its results."""
    big = name.upper()
    filled_in = "\n".join([_filled_in(number, one) for number, one in enumerate(inputs)])
    memory = "\n".join([_memory(number, one) for number, one in enumerate(outputs)])
    freed = [f"    free((void *)inputs[{number}]);" for number in range(len(inputs))]
    freed += [f"    free(outputs[{number}]);" for number in range(len(outputs))]
    end = "\n".join(freed)
    lengths = ", ".join([_length(length) for one in inputs for length in one.shape]) or "0"
    sizes = ", ".join([f"sizeof({one.c_type})" for one in outputs]) or "0"
    printed, first = [], 0
    for number, one in enumerate(outputs):
        printed.append(_printed(number, one, first))
        first += len(one.shape)
    shown = "\n".join(printed)
    return f"""\
/* Calls {name} on arrays of simple numbers and prints its results. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "{name}.h"

/* Stands for each length that is known only when the function is called. */
#define N 3

static void *memory(int64_t n, size_t size)
{{
    /* At least one byte: malloc(0) may return NULL. */
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
    /* Where a capacity is a guess, the function reports the number of elements. */
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
    """Return the text of a makefile that builds the example.

    Parameters
    ----------
    name
        The name of the function.
    rpath
        The linker's notation for the directory of the program.
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


def _length(length: int | None) -> str:
    return "N" if length is None else str(max(length, 0))


def _size(about: CArray) -> str:
    return " * ".join(["(int64_t)1", *map(_length, about.shape)])


def _filled_in(number: int, about: CArray) -> str:
    kind = about.c_type
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
    kind, of = about.c_type, np.dtype(about.dtype).kind
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
