"""Which objective tells how long a plan takes? Plans that are forced to differ are timed.

    python -m benchmarks.plans.objectives                       # a table, in some minutes
    python -m benchmarks.plans.objectives --sizes 10,1000       # vectors of other lengths
    python -m benchmarks.plans.objectives --linkers c           # one linker alone

Of each graph there are plans between no fusion and the planner's own: kernels are merged in a
random order, as far as that is legal by `judge.Judge`, and not all of them. Those are taken that
have most or fewest arrays for their kernels, so that objectives differ. Each plan is compiled as it
is, but for what the linker itself asks for, and gives the same results as no fusion, or nothing is
timed. Plans take turns; the time of one is the least of its rounds.

An objective is judged by two figures. *Correlation*: Spearman's, of what it says and the time, over
the plans of a graph. *Regret*: how much longer the plan takes that it says is the best than the one
that is. Both are means over the graphs. Objectives: kernels first, then arrays; arrays, with a
kernel counted as so many of them; bytes, with a kernel counted as so many of them.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.executor import Function
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.tensor.elemwise import Elemwise

from benchmarks.graphs import small_models
from benchmarks.plans.judge import Clusters, Judge
from benchmarks.plans.kernels import (
    LINKERS,
    assert_same_results,
    compiled_as_is,
    ends_of,
    kernel,
    times_of,
)
from benchmarks.plans.problems import Extracted, extracted

PLANS = 10
TRIED = 300


# Graphs -----------------------------------------------------------------------------------


def likelihood() -> list[Variable]:
    """A normal likelihood of three predictors, with its gradient."""
    return small_models.likelihood(3)


def normalized() -> list[Variable]:
    """Three steps, each of which divides by a sum."""
    x, y = pt.vectors("x", "y")
    outputs = []
    for _ in range(3):
        scaled = x * y + 1
        x = scaled / (1 + pt.sqr(scaled).sum())
        outputs.append(x - pt.sqr(y))
    return [*outputs, x]


def adam() -> list[Variable]:
    """Two parameters, updated."""
    outputs = []
    step = pt.scalar("step")
    for name in "ab":
        value, slope, mean_, square = (pt.vector(f"{name}{i}") for i in range(4))
        mean_ = 0.9 * mean_ + 0.1 * slope
        square = 0.99 * square + 0.01 * slope**2
        outputs += [value - step * mean_ / (pt.sqrt(square) + 1e-8), mean_, square]
    return outputs


def siblings() -> list[Variable]:
    """Many results of three vectors, and the sums of some."""
    x, y, z = pt.vectors("x", "y", "z")
    made = [x + y, x - y, x * y, y * z, y - z, x * z]
    return [
        *made,
        (made[0] * made[3]).sum(),
        (made[1] * made[4] + made[5]).sum(),
        made[2] - made[5],
    ]


GRAPHS: list[Callable[[], list[Variable]]] = [likelihood, normalized, adam, siblings]


# Plans ------------------------------------------------------------------------------------


@dataclass
class Planned:
    """A graph, what may be fused of it, and plans of it with what they cost."""

    fgraph: FunctionGraph
    found: Extracted
    judge: Judge
    plans: list[Clusters]


def planned(make: Callable[[], list[Variable]], rng: random.Random) -> Planned:
    """Return plans of a graph that differ in what they cost."""
    outputs = rewrite_graph(make(), include=("canonicalize", "stabilize", "specialize"))
    fgraph = FunctionGraph(outputs=outputs, clone=True)
    found = extracted(fgraph, "c")
    judge = Judge(found.problem)
    best = [sorted(nodes) for nodes, _, _ in found.plan.clusters()]
    plans: dict[tuple[int, int], Clusters] = {judge.cost([]): [], judge.cost(best): best}
    pool = dict(plans)
    for _ in range(TRIED):
        drawn = _random_plan(judge, rng)
        pool.setdefault(judge.cost(drawn), drawn)
    # Where kernels and arrays say the same, no objective is better than another: the plans that
    # have most arrays for their kernels, or fewest.
    kernels, arrays = np.array(list(pool)).T
    slope, start = np.polyfit(kernels, arrays, 1)
    odd = sorted(pool, key=lambda cost: cost[1] - slope * cost[0] - start)
    for pair in zip(odd, reversed(odd), strict=True):
        for cost in pair:
            if len(plans) < PLANS:
                plans.setdefault(cost, pool[cost])
    return Planned(fgraph, found, judge, list(plans.values()))


def _random_plan(judge: Judge, rng: random.Random) -> Clusters:
    blocks = [{node} for node, group in enumerate(judge.groups) if group >= 0]
    for _ in range(rng.randrange(1, len(blocks))):
        pairs = list(combinations(range(len(blocks)), 2))
        rng.shuffle(pairs)
        for i, j in pairs:
            merged = [block for k, block in enumerate(blocks) if k not in (i, j)]
            merged.append(blocks[i] | blocks[j])
            try:
                judge.cost([sorted(block) for block in merged if len(block) > 1])
            except ValueError:
                continue
            blocks = merged
            break
        else:
            break
    return [sorted(block) for block in blocks if len(block) > 1]


def n_bytes(planned: Planned, plan: Clusters, size: int) -> int:
    """The bytes that kernels read and write, of vectors of that length."""
    judge, total = planned.judge, 0
    for members in judge.kernels(plan):
        _, read, written = judge.operands(members)
        for variable in read | written:
            kind = planned.found.arrays.variables[variable].type
            length = 1 if all(kind.broadcastable) else size
            total += length * np.dtype(kind.dtype).itemsize
    return total


def compiled(planned: Planned, plan: Clusters, linker: str) -> Function:
    """The graph with the plan's kernels, compiled as it is."""
    fgraph, memo = planned.fgraph.clone_get_equiv()
    nodes = planned.found.arrays.nodes
    for cluster in plan:
        inputs, outputs = ends_of([memo[nodes[node]] for node in cluster], fgraph)
        new = kernel(inputs, outputs)
        fgraph.replace_all(list(zip(outputs, new, strict=True)), import_missing=True)
    fgraph.check_integrity()
    n_kernels = sum(isinstance(node.op, Elemwise) for node in fgraph.apply_nodes)
    assert n_kernels == planned.judge.cost(plan)[0] + sum(
        isinstance(node.op, Elemwise) and group < 0
        for node, group in zip(nodes, planned.judge.groups, strict=True)
    )
    return compiled_as_is(fgraph.inputs, fgraph.outputs, linker)


# Judging -----------------------------------------------------------------------------------


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """The correlation of ranks, equal values of the same rank."""

    def ranks(values: Sequence[float]) -> np.ndarray:
        array = np.asarray(values)
        return np.array([(array < v).sum() + ((array == v).sum() - 1) / 2 for v in array])

    return float(np.corrcoef(ranks(first), ranks(second))[0, 1])


def objectives() -> dict[str, Callable[[int, int, int], float]]:
    """What is to be small, by kernels, arrays and bytes."""
    found: dict[str, Callable[[int, int, int], float]] = {
        "kernels first": lambda kernels, arrays, _: 1e6 * kernels + arrays
    }
    for launch in (0, 1, 2, 4, 8):
        found[f"arrays + {launch} a kernel"] = lambda k, a, _, launch=launch: a + launch * k
    for launch in (0, 10, 12, 14, 16, 18):
        size = 2**launch if launch else 0
        found[f"bytes + {size:,} a kernel"] = lambda k, _, b, size=size: b + size * k
    return found


def main(arguments: Sequence[str]) -> int:
    """Measure, print the table, and return the exit status."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="10,1000,100000,10000000")
    parser.add_argument("--linkers", default=",".join(LINKERS))
    asked = parser.parse_args(arguments)
    sizes = [int(size) for size in asked.sizes.split(",")]
    rng, values_rng = random.Random(0), np.random.default_rng(0)
    graphs = [planned(make, rng) for make in GRAPHS]
    found: dict[tuple[str, int], dict[str, list[tuple[float, float]]]] = {}
    for graph, make in zip(graphs, GRAPHS, strict=True):
        costs = [graph.judge.cost(plan) for plan in graph.plans]
        print(f"{make.__name__}: kernels / arrays", *(f"{k} / {a}" for k, a in costs), flush=True)
        for linker in asked.linkers.split(","):
            functions = [compiled(graph, plan, linker) for plan in graph.plans]
            for size in sizes:
                values = [
                    np.asarray(values_rng.uniform(0.5, 1.5, () if v.type.ndim == 0 else size))
                    for v in functions[0].maker.fgraph.inputs
                ]
                assert_same_results(functions, values)
                times = times_of(functions, values)
                print(f"  {linker} {size}:", *(f"{1e6 * t:.1f}" for t in times), "us", flush=True)
                for name, objective in objectives().items():
                    said = [
                        objective(k, a, n_bytes(graph, plan, size))
                        for (k, a), plan in zip(costs, graph.plans, strict=True)
                    ]
                    chosen = mean(t for t, s in zip(times, said, strict=True) if s == min(said))
                    row = found.setdefault((linker, size), {}).setdefault(name, [])
                    row.append((spearman(said, times), chosen / min(times) - 1))
    columns = list(found)
    print(
        f"\n{'correlation, regret':24}" + "".join(f"{lk + ' ' + str(n):>16}" for lk, n in columns)
    )
    for name in objectives():
        cells = [
            [mean(column) for column in zip(*found[key][name], strict=True)] for key in columns
        ]
        shown = "".join(f"{c:>8.2f}{100 * r:>6.1f} %" for c, r in cells)
        print(f"{name:24}{shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
