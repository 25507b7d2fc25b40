"""C header of an exported function."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytensor_fuse._native.emission.c.support import (
    DOES_NOT_FIT,
    N_DETAILS,
    NEGATIVE_LENGTH,
    NO_MEMORY,
    WRONG_LENGTH,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.c_entry.function import CArray


def header(
    name: str, inputs: Sequence[CArray], outputs: Sequence[CArray], machine: str, version: str
) -> str:
    """Return the text of the header.

    Parameters
    ----------
    name
        The name of the function.
    inputs, outputs
        The arrays that it takes and returns.
    machine
        The machine that its code is compiled for.
    version
        The version of this package.
    """
    big = name.upper()
    n_lengths, n_output_lengths = (
        sum(len(one.shape) for one in arrays) for arrays in (inputs, outputs)
    )
    return f"""\
/* {name}: a compiled function of PyTensor, written by pytensor_fuse {version}.

   The library is for {machine}, and needs no Python.

   Inputs, with the positions of their lengths in `lengths`:
{_listed(inputs)}
   Outputs, with the positions of their lengths in `output_lengths`:
{_listed(outputs)}
   A length of ? is known only at the call. */

#ifndef {big}_H
#define {big}_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

#define {big}_N_INPUTS {len(inputs)}
#define {big}_N_LENGTHS {n_lengths}
#define {big}_N_OUTPUTS {len(outputs)}
#define {big}_N_OUTPUT_LENGTHS {n_output_lengths}
#define {big}_N_DETAILS {N_DETAILS}

/* Return codes besides 0 and the positive numbers of the function's own failures. */
#define {big}_NO_MEMORY ({NO_MEMORY})
#define {big}_DOES_NOT_FIT ({DOES_NOT_FIT})
#define {big}_WRONG_LENGTH ({WRONG_LENGTH})
#define {big}_NEGATIVE_LENGTH ({NEGATIVE_LENGTH})

/* Computes the outputs. Any number of threads may call it concurrently.

   inputs          the address of each input's elements, an aligned C-contiguous array that is
                   never written to.
   lengths         the lengths of all axes of all inputs, one input after the other.
   outputs         the address of each output's buffer, aligned and without overlaps.
   capacities      the number of elements that fit in each: 1 for an output without axes.
   output_lengths  receives the lengths of all axes of all outputs; may be NULL.
   details         receives {N_DETAILS} numbers that describe a failure; may be NULL.

   Returns 0 on success and a code otherwise. Outputs may have been written to by then.

   {big}_NO_MEMORY: out of memory for intermediate results.
   {big}_DOES_NOT_FIT: output details[0] has details[1] elements, more than its buffer holds;
       its lengths have been written.
   {big}_WRONG_LENGTH: axis details[1] of input details[0] has length details[3], which is negative
       or should be details[2].
   {big}_NEGATIVE_LENGTH: axis details[1] of output details[0] would have length details[2].
   A positive number: see {name}_message. The number may change with each export of the library. */
int64_t {name}(const void *const *inputs, const int64_t *lengths, void *const *outputs,
{" " * (len(name) + 9)}const int64_t *capacities, int64_t *output_lengths, int64_t *details);

/* Writes the message of a code, at most size - 1 characters and a 0; returns its full length.

   details may be NULL; the text then has zeros for the numbers. */
size_t {name}_message(int64_t code, const int64_t *details, char *text, size_t size);

/* Returns the name of the exception that Python would raise for a code. */
const char *{name}_exception(int64_t code);

#ifdef __cplusplus
}}
#endif

#endif
"""


def _listed(arrays: Sequence[CArray]) -> str:
    lines, first = [], 0
    for number, one in enumerate(arrays):
        lengths = "".join([f"[{'?' if length is None else length}]" for length in one.shape])
        last = first + len(one.shape) - 1
        places = "" if last < first else f", lengths {first}"
        places += f" to {last}" if last > first else ""
        # A name may be any text, but must not end the C comment.
        name = "" if one.name is None else f" ({_plain(one.name)})"
        lines.append(f"     {number}{name}: {one.c_type}{lengths}{places}")
        first += len(one.shape)
    return "\n".join(lines or ["     none"])


def _plain(text: str) -> str:
    return re.sub(r"[^\w .,:+\-()\[\]]", "_", text, flags=re.ASCII)
