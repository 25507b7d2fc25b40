"""How long a mathematical function takes for an element, ours and the C library's.

    python -m benchmarks.native.functions                         # a minute
    python -m benchmarks.native.functions --only exp --lengths 1,3,7,4096

Each figure is that of a loop over so many rows of so many elements, in machine code of the same
back-end: vectors of each width with our functions, and single elements with those that Numba calls.
They take turns, and the figure is the median. Arguments are where models have them. Rows shorter
than a vector show what the rest of a loop costs, and rows of one element what a number costs.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np

from benchmarks.measuring import tables
from benchmarks.measuring.turns import call_times
from pytensor_fuse._native import mathematics
from pytensor_fuse._native.emission.calls import C_NAMES
from pytensor_fuse._native.emission.machine import Machine
from pytensor_fuse._native.emission.module import emit_module
from pytensor_fuse._native.passes.placement import place_temporaries
from pytensor_fuse._native.passes.rewrite import rewritten
from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.model import Program
from pytensor_fuse._native.runtime.externals import address_of
from pytensor_fuse._native.runtime.llvm import Code, host_machine, object_code

ELEMENTS = 4096
BATCH_SECONDS = 0.002
# Where the arguments lie if not between -4 and 4.
RANGES = {
    "log": (0.01, 9.0),
    "log2": (0.01, 9.0),
    "log10": (0.01, 9.0),
    "log1p": (-0.9, 9.0),
    "log1mexp": (-9.0, -0.01),
    "sqrt": (0.01, 9.0),
    "pow": (0.1, 4.0),
    "arcsin": (-1.0, 1.0),
    "arccos": (-1.0, 1.0),
    "arctanh": (-0.99, 0.99),
    "arccosh": (1.0, 9.0),
    "erfinv": (-0.99, 0.99),
    "erfcinv": (0.01, 1.99),
    "gamma": (0.1, 9.0),
    "gammaln": (0.1, 30.0),
    "digamma": (0.1, 30.0),
    "trigamma": (0.1, 30.0),
    "erfcx": (-1.0, 4.0),
}
MACHINES = {"512": 512, "256": 256, "128": 128}


def loop(name: str, rows: int, length: int) -> Program:
    """A program that computes a function of all elements, row by row."""
    builder = Builder()
    arity = mathematics.FUNCTIONS[name].arguments
    given = [builder.given("input", k, "f64", (rows, length)) for k in range(arity)]
    first, second = builder.program.buffers[given[0]].lengths
    out = builder.buffer("input", arity, "f64", (first, second), is_once=False)
    with builder.loop(first) as row, builder.loop(second) as column:
        at = (row.index, column.index)
        builder.store(out, at, builder.op(name, *[builder.load(one, at) for one in given]))
    return builder.program


class Timed:
    """A compiled loop, and its arrays."""

    def __init__(self, name: str, machine: Machine, length: int, *, uses_library: bool) -> None:
        rows = max(1, ELEMENTS // length)
        program = rewritten(loop(name, rows, length))
        placement = place_temporaries(program)
        module = emit_module(program, placement, machine, uses_library=uses_library)
        externals = [(one, address_of(one)) for one in module.externals]
        self._code = Code(object_code(module.text), externals)
        self._entry = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)(self._code.address)
        low, high = RANGES.get(name, (-4.0, 4.0))
        rng = np.random.default_rng(29)
        n_arguments = mathematics.FUNCTIONS[name].arguments
        self.arrays = [rng.uniform(low, high, (rows, length)) for _ in range(n_arguments)]
        self.arrays.append(np.zeros((rows, length)))
        self._pointers = (ctypes.c_void_p * len(self.arrays))(
            *[array.ctypes.data for array in self.arrays]
        )
        self._dims = (ctypes.c_int64 * 16)()

    def __call__(self) -> None:
        assert self._entry(self._pointers, self._dims, None, None) == 0

    @property
    def n_elements(self) -> int:
        return self.arrays[0].size


def sides_of(name: str, length: int) -> dict[str, Timed]:
    """The loops of all vector widths that this processor has, and of the C library."""
    host = host_machine()
    found = {}
    for title, bits in MACHINES.items():
        if bits <= host.vector_bits:
            machine = Machine(bits, has_masks=host.has_masks and bits > 128, has_fma=host.has_fma)
            found[title] = Timed(name, machine, length, uses_library=True)
    if name in C_NAMES or name not in ("trigamma", "sqrt"):
        scalar = Machine(64, has_masks=False, has_fma=host.has_fma)
        found["C"] = Timed(name, scalar, length, uses_library=False)
    for side in found.values():
        side()
    results = [side.arrays[-1] for side in found.values()]
    for result in results:
        np.testing.assert_allclose(result, results[0], rtol=1e-13, atol=1e-13)
    return found


def nanoseconds(sides: dict[str, Timed], rounds: int) -> dict[str, float]:
    """Nanoseconds of an element by side."""
    times = call_times(sides, (), rounds, batch=BATCH_SECONDS, clock=time.perf_counter)
    return {side: 1e9 * median(of) / sides[side].n_elements for side, of in times.items()}


def rows_of(names: Sequence[str], lengths: Sequence[int], rounds: int) -> Iterator[list[str]]:
    """The cells of each function and length of rows."""
    for name in names:
        for length in lengths:
            took = nanoseconds(sides_of(name, length), rounds)
            widest = next(iter(took.values()))
            ratio = f"{took['C'] / widest:.2f}" if "C" in took else ""
            cells = [f"{took[title]:.2f}" if title in took else "" for title in (*MACHINES, "C")]
            yield [name, str(length), *cells, ratio]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", help="a function; may be given again")
    parser.add_argument("--lengths", default="1,3,7,4096")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    names = options.only or list(mathematics.FUNCTIONS)
    lengths = [int(one) for one in options.lengths.split(",")]
    headings = ["function", "elements of a row", *MACHINES, "C", "C / ours"]
    print(tables.markdown(headings, rows_of(names, lengths, options.rounds)), end="")


if __name__ == "__main__":
    main()
