"""Compile real graphs with and without the package, and print what differs.

    python -m benchmarks.demo

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import geometric_mean, median

import pytensor
import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph

from benchmarks.fusion import passes
from benchmarks.graphs.named import RADON, Reference, demo_references, has_pymc
from benchmarks.measuring import tables
from benchmarks.measuring.results import ROUNDING, largest_difference
from benchmarks.measuring.sides import compiled
from benchmarks.measuring.turns import Timings, format_seconds, frozen_heap, interleaved, seconds
from benchmarks.native import wait
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

SIDES = {
    "kernels": ["stock", "ours"],
    "arrays": ["stock", "ours"],
    "pass": ["stock", "ours", "ratio"],
    "compile": ["stock", "ours", "ratio"],
    "again": ["ours", "ratio"],
}

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
        elapsed = time.perf_counter() - self._start
        print(f"[{elapsed:5.1f} s] {text}", file=sys.stderr, flush=True)


def fuse_both(fgraph: FunctionGraph) -> tuple[list[str], bool]:
    """The cells of one graph through both passes, and whether our plan is worse."""
    stock, ours = map(passes.tally, passes.fused(fgraph))
    timings = interleaved(
        passes.stock_pass,
        passes.our_pass,
        lambda: (passes.copy(fgraph),),
        rounds=PASS_ROUNDS,
        warmup=1,
        clock=CLOCK,
    )
    counts = [len(fgraph.apply_nodes), stock.kernels, ours.kernels, stock.arrays, ours.arrays]
    return [*map(str, counts), *timing_cells(timings)], passes.is_worse(ours, stock)


def compile_both(reference: Reference, say: Callable[[str], None]) -> CompileReport:
    graph = reference.build()
    say(f"{reference.name}: compiling {COMPILE_ROUNDS} times with and without")
    timings = interleaved(
        lambda: compiled(*graph, ours=False, mode=MODE),
        lambda: compiled(*graph, ours=True, mode=MODE),
        rounds=COMPILE_ROUNDS,
        warmup=1,
        clock=CLOCK,
    )

    def compiled_before() -> float:
        # Of a model that is built again: the graphs are equal, not the same.
        graph = reference.build()
        return seconds(lambda: compiled(*graph, ours=True, mode=MODE, keep=True), clock=CLOCK)

    compiled_before()
    with frozen_heap():
        again = [compiled_before() for _ in range(COMPILE_ROUNDS)]
    say(f"{reference.name}: calling both functions; Numba compiles stock's")
    values = reference.values(SIZE)
    function = compiled(*graph, ours=True, mode=MODE, native=True)
    stock = compiled(*graph, ours=False, mode=MODE)
    difference = largest_difference(function(*values), stock(*values))
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
    plan_fusion(passes.graph_at_fusion(last, MODE)).to_html(PLAN_PAGE)
    python = Path(sys.executable)
    if python.is_relative_to(Path.cwd()):
        python = python.relative_to(Path.cwd())
    return f"""\
Audit of {last.name}: {result.audited}
Plan of {last.name}: {PLAN_PAGE.as_uri()}
Next, on a model of your own, where model.py says `with pm.Model() as model:`:
  {python} -m pytensor_fuse plan model.py:model --html plan.html
  {python} -m pytensor_fuse audit model.py:model"""


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
        compiled([x], [pt.exp(x) + 1], ours=ours, mode=MODE)([1.0])


def print_waits(measured: Sequence[wait.Waits]) -> None:
    sides = wait.sides_here()
    print("What a person waits for\n")
    headings = tables.grouped(["graph"], wait.columns(sides), ["difference"])
    rows = [one.cells(sides) for one in measured]
    print(tables.aligned(headings, rows, left=1, rule=True))
    rounds = f", median of {WAIT_ROUNDS} rounds" if WAIT_ROUNDS > 1 else ", of one round"
    print(WAIT_FOOTER.format(mode=MODE or "the default", rounds=rounds))
    print(f"\n{wait.gained(measured)}\n")


def main() -> int:
    warnings.filterwarnings("ignore", message="Loop fusion failed")
    progress = Progress()
    progress.say(f"PyTensor {pytensor.__version__}, Python {platform.python_version()}, {MODE=}")
    if not has_pymc():
        progress.say("PyMC is not installed: its model is left out")
    references = demo_references()
    models = [one.name for one in references if one.name.startswith("pymc")]
    waited = [
        wait.waits(name, SIZE, MODE, WAIT_ROUNDS, progress.say) for name in (RADON.name, *models)
    ]
    failures = [
        f"{one.graph}: first values differ by {one.difference:.1e}"
        for one in waited
        if one.difference > ROUNDING
    ]
    warm_up()

    rows: list[list[str]] = []
    results: list[CompileReport] = []
    for reference in references:
        progress.say(f"{reference.name}: fusing the raw graph and the one that a compile fuses")
        raw, raw_is_worse = fuse_both(reference.fgraph())
        fused, is_worse = fuse_both(passes.graph_at_fusion(reference, MODE))
        result = compile_both(reference, progress.say)
        results.append(result)

        times = [*timing_cells(result.timings), *timing_cells(result.again)[1:]]
        rows.append([reference.name, "raw", *raw, *[""] * 6])
        rows.append(["", "compiled", *fused, *times, f"{result.difference:.1e}"])
        if raw_is_worse or is_worse:
            failures.append(f"{reference.name}: our plan is worse than stock's")
        if result.difference > ROUNDING:
            failures.append(f"{reference.name}: results differ by {result.difference:.1e}")
    progress.say("done")

    print(
        f"\npytensor-fuse on PyTensor {pytensor.__version__}, Python {platform.python_version()}\n"
    )
    print_waits(waited)
    print("What rewriting does, and takes\n")
    headings = tables.grouped(["graph", "", "nodes"], SIDES, ["difference"])
    print(tables.aligned(headings, rows, left=2, rule=True))
    mode = MODE or "the default"
    print(
        FOOTER.format(pass_rounds=PASS_ROUNDS, warmup=1, compile_rounds=COMPILE_ROUNDS, mode=mode)
    )
    print(f"\n{gained(results)}", closing(references[-1], results[-1]), sep="\n")
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
