"""Compile real graphs with and without the package, and print what differs.

    python benchmarks/demo.py

Progress goes to standard error, two tables to standard output: what a person waits for, and what
rewriting does and takes. What was gained is a line after each; a picture of a plan, what an audit
says of a model, and what to try next come last. The exit status is 1 if results differ by more than
rounding or if our plan is worse than stock's on any graph.
"""

from __future__ import annotations

import platform
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import geometric_mean, median

import pytensor
import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph

import measure
import native_wait
from graphs import RADON, Reference, demo_references, has_pymc
from measure import Tally, Timings, format_seconds
from pytensor_fuse import audit, plan_fusion

# What PyMC's samplers run when they can.
MODE = "NUMBA" if find_spec("numba") else None
# Each takes a new process for each side, and stock some seconds in it.
WAIT_ROUNDS = 1
PASS_ROUNDS = 7
COMPILE_ROUNDS = 3
SIZE = 1000
# It stands still while something else has the processor: a demo runs on whatever machine there is.
CLOCK = time.thread_time

# `make clean` removes it.
PLAN_PAGE = Path(__file__).parents[1] / "target" / "demo" / "plan.html"

WAIT_FOOTER = """\
graph        a log-density and its gradient; data are arguments, of PyMC models constants
first value  pytensor.function in {mode} mode and the first call, in a new process with empty
             compile directories; the graph is built before, and what a back-end imports counts
call         each call after it
once more    pytensor.function and the first call, of an equal graph in the same process
stock        PyTensor alone, whose graph Numba compiles; jax: PyTensor's JAX mode
ratio        stock's time divided by ours; times are the processor's{rounds}
difference   largest difference of our results from stock's, relative to the largest element"""

HEADINGS = [
    ("graph", ""),
    ("", ""),
    ("nodes", ""),
    ("kernels", "stock"),
    ("", "ours"),
    ("arrays", "stock"),
    ("", "ours"),
    ("pass", "stock"),
    ("", "ours"),
    ("", "ratio"),
    ("compile", "stock"),
    ("", "ours"),
    ("", "ratio"),
    ("again", "ours"),
    ("", "ratio"),
    ("difference", ""),
]

FOOTER = """\
raw         the graph as it was written; compiled: as a compile hands it to the fusion pass,
            simplified by the rewrites before
nodes       of the graph before the pass
kernels     Elemwise nodes after the pass: each is one loop over its arrays
arrays      distinct inputs that kernels read (constants aside) and outputs that leave them
pass        planning and applying, median of {pass_rounds} rounds, stock and ours in turns
compile     pytensor.function in {mode} mode with machine code left to Numba on both sides
            (`enabled(False, "native")`), median of {compile_rounds} rounds: rewriting, mostly; what
            Numba compiles at the first call is not in it
again       the same of a graph that was compiled before, from the cache
ratio       stock's time divided by ours, median over the rounds; times are the processor's
difference  largest difference of the compiled functions' results, ours with machine code,
            relative to the largest element"""


@dataclass(frozen=True)
class PassReport:
    """One graph through both passes."""

    nodes: int
    stock: Tally
    ours: Tally
    timings: Timings

    @property
    def is_worse(self) -> bool:
        return measure.is_worse(self.ours, self.stock)


@dataclass(frozen=True)
class CompileReport:
    """One graph through two compiles."""

    timings: Timings
    again: Timings
    difference: float
    audited: str


class Progress:
    """Lines on standard error with the time since the start."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def say(self, text: str) -> None:
        print(f"[{self.elapsed:5.1f} s] {text}", file=sys.stderr, flush=True)

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._start


def fuse_both(fgraph: FunctionGraph) -> PassReport:
    stock, ours = measure.fused_tallies(fgraph)
    timings = measure.interleaved(
        measure.stock_pass,
        measure.our_pass,
        lambda: (measure.copy(fgraph),),
        rounds=PASS_ROUNDS,
        clock=CLOCK,
    )
    return PassReport(len(fgraph.apply_nodes), stock, ours, timings)


def compile_both(reference: Reference, progress: Progress) -> CompileReport:
    inputs, outputs = reference.build()

    def compiled(*, ours: bool, native: bool = False) -> pytensor.compile.Function:
        return measure.compiled(inputs, outputs, ours=ours, mode=MODE, native=native)

    progress.say(f"{reference.name}: compiling {COMPILE_ROUNDS} times with and without")
    timings = measure.interleaved(
        lambda: compiled(ours=False),
        lambda: compiled(ours=True),
        rounds=COMPILE_ROUNDS,
        clock=CLOCK,
    )

    def compiled_before() -> float:
        # Of a model that is built again: the graphs are equal, not the same.
        graph = reference.build()
        return measure.seconds(
            lambda: measure.compiled(*graph, ours=True, mode=MODE, keep=True), clock=CLOCK
        )

    compiled_before()
    with measure.frozen_heap():
        again = tuple(compiled_before() for _ in range(COMPILE_ROUNDS))
    progress.say(f"{reference.name}: calling both functions; Numba compiles stock's")
    values = reference.values(SIZE)
    function = compiled(ours=True, native=True)
    difference = measure.largest_difference(function(*values), compiled(ours=False)(*values))
    return CompileReport(timings, Timings(timings.stock, again), difference, audit_line(function))


def audit_line(function: pytensor.compile.Function) -> str:
    """Return the first lines of an audit of a model without matrices."""
    found = audit(function)
    return f"{found.kernels.lines()[0]}; {found.memory.lines()[0].partition(',')[0]}"


def gained(results: Sequence[CompileReport]) -> str:
    """Say in one line what rewriting gained on this machine."""
    compiles = geometric_mean(result.timings.ratio for result in results)
    again = geometric_mean(result.again.ratio for result in results)
    difference = max(result.difference for result in results)
    return (
        f"Gained in rewriting: {compiles:.1f}x as fast, of graphs compiled before {again:.0f}x "
        f"(mean of {len(results)}); results differ by {difference:.0e} at most."
    )


def closing(last: Reference, result: CompileReport) -> str:
    """A picture of the last graph's plan, its audit, and what to try next."""
    PLAN_PAGE.parent.mkdir(parents=True, exist_ok=True)
    plan_fusion(measure.graph_at_fusion(last, MODE)).to_html(PLAN_PAGE)
    python = Path(sys.executable)
    if python.is_relative_to(Path.cwd()):
        python = python.relative_to(Path.cwd())
    return f"""\
Audit of {last.name}: {result.audited}
Plan of {last.name}: {PLAN_PAGE.as_uri()}
Next, on a model of your own, where model.py says `with pm.Model() as model:`:
  {python} -m pytensor_fuse plan model.py:model --html plan.html
  {python} -m pytensor_fuse audit model.py:model"""


def table(headings: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]], names: int) -> str:
    """Align columns, the first ones, of ``names``, to the left and the others to the right."""
    heads = [[head[line] for head in headings] for line in (0, 1)]
    cells = [*heads, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]

    def line(row: Sequence[str]) -> str:
        left = [cell.ljust(width) for cell, width in zip(row[:names], widths, strict=False)]
        right = [cell.rjust(width) for cell, width in zip(row[names:], widths[names:], strict=True)]
        return "  ".join([*left, *right]).rstrip()

    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join([*map(line, heads), rule, *map(line, rows)])


def pass_cells(report: PassReport) -> list[str]:
    stock, ours, timings = report.stock, report.ours, report.timings
    return [
        str(report.nodes),
        str(stock.kernels),
        str(ours.kernels),
        str(stock.arrays),
        str(ours.arrays),
        *timing_cells(timings),
    ]


def timing_cells(timings: Timings) -> list[str]:
    return [
        format_seconds(median(timings.stock)),
        format_seconds(median(timings.ours)),
        f"{timings.ratio:.2f}x",
    ]


def warm_up() -> None:
    """Compile something, so that what a process loads once is part of nobody's time."""
    x = pt.vector("x")
    for ours in (False, True):
        measure.compiled([x], [pt.exp(x) + 1], ours=ours, mode=MODE)([1.0])


def wait_for_values(progress: Progress) -> tuple[list[native_wait.Waits], list[str]]:
    """Measure what a person waits for; and the graphs of which results differ, as failures."""
    models = [r.name for r in demo_references() if r.name.startswith("pymc")]
    measured = [
        native_wait.waits(name, SIZE, MODE, WAIT_ROUNDS, progress.say)
        for name in (RADON.name, *models)
    ]
    return measured, [
        f"{one.graph}: first values differ by {one.difference:.1e}"
        for one in measured
        if one.difference > measure.ROUNDING
    ]


def print_waits(measured: Sequence[native_wait.Waits]) -> None:
    sides = native_wait.sides_here()
    print("What a person waits for\n")
    print(table(native_wait.headings(sides), [one.cells(sides) for one in measured], 1), end="\n\n")
    rounds = f", median of {WAIT_ROUNDS} rounds" if WAIT_ROUNDS > 1 else ", of one round"
    print(WAIT_FOOTER.format(mode=MODE or "the default", rounds=rounds))
    print(f"\n{native_wait.gained(measured)}\n")


def main() -> int:
    warnings.filterwarnings("ignore", message="Loop fusion failed")
    progress = Progress()
    progress.say(f"PyTensor {pytensor.__version__}, Python {platform.python_version()}, {MODE=}")
    if not has_pymc():
        progress.say("PyMC is not installed: its model is left out")
    waited, failures = wait_for_values(progress)
    warm_up()

    rows: list[list[str]] = []
    results: list[CompileReport] = []
    references = demo_references()
    for reference in references:
        progress.say(f"{reference.name}: fusing the raw graph and the one that a compile fuses")
        raw = fuse_both(reference.fgraph())
        at_fusion = fuse_both(measure.graph_at_fusion(reference, MODE))
        result = compile_both(reference, progress)
        results.append(result)

        rows.append([reference.name, "raw", *pass_cells(raw), *[""] * 6])
        rows.append(
            [
                "",
                "compiled",
                *pass_cells(at_fusion),
                *timing_cells(result.timings),
                *timing_cells(result.again)[1:],
                f"{result.difference:.1e}",
            ]
        )
        if raw.is_worse or at_fusion.is_worse:
            failures.append(f"{reference.name}: our plan is worse than stock's")
        if result.difference > measure.ROUNDING:
            failures.append(f"{reference.name}: results differ by {result.difference:.1e}")
    progress.say("done")

    print(
        f"\npytensor-fuse on PyTensor {pytensor.__version__}, Python {platform.python_version()}\n"
    )
    print_waits(waited)
    print("What rewriting does, and takes\n")
    print(table(HEADINGS, rows, 2), end="\n\n")
    mode = MODE or "the default"
    print(FOOTER.format(pass_rounds=PASS_ROUNDS, compile_rounds=COMPILE_ROUNDS, mode=mode))
    print(f"\n{gained(results)}", closing(references[-1], results[-1]), sep="\n")
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
