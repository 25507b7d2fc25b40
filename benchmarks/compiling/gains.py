"""The gain of each accelerator, alone and left out, on twelve graphs, beside the noise.

``python -m benchmarks.compiling.gains`` prints a table in Markdown; names after it restrict the
accelerators, ``--rounds`` sets the number of rounds. Each graph has a process of its own. A round
compiles the graph with the Python linker, in turns with a setting and with its baseline, and
divides the processor time of the setting by the mean of the baselines before and after it. The two
series are:

- alone: none of the accelerators, against this one only. `inner_functions` is on in both, since
  the compilation in C of inner functions hides all others;
- left out: all but this one, against all.

The baselines are compared with themselves in the same way: that is the noise. A figure is the
median of its ratios over all rounds; 1.02 means that a compile takes 2 % longer without this
accelerator. An accelerator pays if its mean over the graphs, alone or left out, exceeds 1 by three
standard errors of the noise's mean. The largest figure on one graph is told beside the largest of
the noise.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import geometric_mean, median, stdev
from typing import Any, Final

import pytensor_fuse
from benchmarks.compiling.accelerators import compile_seconds
from benchmarks.graphs.named import reference
from benchmarks.graphs.reference import Reference
from benchmarks.graphs.series import SERIES as MODELS
from benchmarks.measuring import processes
from benchmarks.measuring.turns import frozen_heap
from support.switching import switch_on

GRAPHS: Final = (
    "radon",
    "mixture(5)",
    "PyMC hierarchical_regression",
    "Gaussian process",
    "deep(100)",
    "PyMC autoregression_and_random_walk",
    "large(8)",
    "PyMC latent_gaussian_process",
    "kalman-filter",
    "PyMC student_t_regression",
    "PyMC lkj_correlation",
    "PyMC loop",
)
SERIES: Final = ("alone", "left out")
# Comparisons of a baseline with itself, for each round and series.
NULLS: Final = ("noise 1", "noise 2")

# By series, then by accelerator (or noise): the ratios of the rounds.
Ratios = dict[str, dict[str, list[float]]]


def reference_of(name: str) -> Reference:
    """Return the graph of that name."""
    if name in MODELS:
        return Reference(name, lambda: MODELS[name].graph()[:2], lambda size: [])
    return reference(name)


def measured(graph: str, rounds: str, chosen: str, *names: str) -> dict[str, Any]:
    """Return the ratios of the time without to that with each accelerator, in this process."""
    reference = reference_of(graph)
    all_names = list(pytensor_fuse.status()["accelerators"].parts)
    few = ["inner_functions"]
    entries = [*names, *NULLS]
    baselines = {"alone": few, "left out": all_names}
    wanted = chosen.split(",")
    ratios: Ratios = {series: {entry: [] for entry in entries} for series in wanted}
    for number in range(-1, int(rounds)):
        for series in wanted:
            baseline = baselines[series]
            # CPython caches no attributes of a class that has changed a thousand times: what is
            # outside the blocks of `compile_seconds` is the baseline, so that they change little.
            switch_on(accelerators=baseline)
            with frozen_heap():
                before = compile_seconds(reference, accelerators=baseline)
                for entry in entries if number % 2 else reversed(entries):
                    setting = baseline
                    if entry not in NULLS:
                        setting = sorted({*baseline} ^ {entry})
                    own = compile_seconds(reference, accelerators=setting)
                    after = compile_seconds(reference, accelerators=baseline)
                    ratio = own / ((before + after) / 2)
                    is_gain = series == "left out" or entry in few
                    if number >= 0:
                        ratios[series][entry].append(ratio if is_gain else 1 / ratio)
                    before = after
    return {"ratios": ratios}


def table(names: list[str], ratios: dict[str, Ratios]) -> list[str]:
    """Return a row for each accelerator: its mean and largest figures, and whether it pays."""
    chosen = list(next(iter(ratios.values())))
    figures = {
        (series, entry): {graph: median(ratios[graph][series][entry]) for graph in ratios}
        for series in chosen
        for entry in (*names, *NULLS)
    }
    noise = {
        series: [value - 1 for null in NULLS for value in figures[series, null].values()]
        for series in chosen
    }
    error = {series: stdev(values) / len(ratios) ** 0.5 for series, values in noise.items()}
    largest = {series: max(map(abs, values)) for series, values in noise.items()}
    heads = "".join(f" {series} | at most |" for series in chosen)
    rows = [f"| Accelerator |{heads} Pays |", f"|---|{'---|---|' * len(chosen)}---|"]
    for name in names:
        row, pays = f"| `{name}` |", False
        for series in chosen:
            of_graphs = figures[series, name]
            mean = geometric_mean(of_graphs.values())
            graph = max(of_graphs, key=lambda one: of_graphs[one])
            row += f" {mean:.3f} | {of_graphs[graph]:.3f} ({graph}) |"
            pays |= mean - 1 > 3 * error[series]
        rows.append(f"{row} {'yes' if pays else 'no'} |")
    limits = "".join(f" ± {error[series]:.3f} | {largest[series]:.3f} |" for series in chosen)
    rows.append(f"| noise: standard error of a mean, largest figure |{limits} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="accelerators; all if there is none")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--series", nargs="+", choices=SERIES, default=SERIES)
    parser.add_argument("--raw", type=Path, help="write all ratios to this file")
    options = parser.parse_args()
    names = options.names or list(pytensor_fuse.status()["accelerators"].parts)
    given = (str(options.rounds), ",".join(options.series), *names)
    variables = {"PYTENSOR_FUSE_CACHE": "off", "PYTHONHASHSEED": "0"}
    ratios: dict[str, Ratios] = {}
    for graph in GRAPHS:
        function = "benchmarks.compiling.gains:measured"
        found = processes.run(function, graph, *given, variables=variables)
        ratios[graph] = found["ratios"]
        print(f"measured {graph}", file=sys.stderr, flush=True)
        if options.raw is not None:
            options.raw.write_text(json.dumps(ratios))
    print("\n".join(table(names, ratios)))


if __name__ == "__main__":
    main()
