"""Fusion problems that anyone can check: plan them, judge the plans, print a table.

    python benchmarks/corpus.py                 # plan all problems and check what is recorded
    python benchmarks/corpus.py --quick         # the same without the search for the best plan
    python benchmarks/corpus.py --regenerate    # make the files anew; asks for PyMC

Each file of ``benchmarks/corpus`` holds a problem as integer arrays, its origin, the best plan, its
cost, and a bound that no plan is below; for PyTensor's graphs also stock PyTensor's plan and its
cost. A problem is solved if cost and bound are equal. `Judge` decides whether a plan is legal and
computes its cost; it shares nothing with the planner. The exit status is 1 if anything is not as
recorded.

The arrays are those of ``plan_arrays``: node ``i`` reads ``inputs[i]`` and makes ``outputs[i]``; it
may be fused with others of its group (-1: with none) that it reads or is read by, or with which it
shares an operand whose link is that group. Constants are no arrays. A kernel of several nodes has
at most ``max_operands`` distinct inputs and outputs. All kernels together leave the graph, with the
orderings, without cycles.

The best plan has fewest kernels, and among those fewest arrays that they read and write.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pytensor_fuse import _core

CORPUS = Path(__file__).parent / "corpus"
EFFORT = 4_000_000

# Problems of up to this many fusable nodes are to be solved.
SMALL = 60

# Kernels and arrays.
Cost = tuple[int, ...]
Clusters = list[list[int]]


class Judge:
    """What is a legal plan of a problem, and what it costs, from the definition."""

    def __init__(self, problem: dict[str, Any]) -> None:
        self.inputs: list[list[int]] = problem["inputs"]
        self.outputs: list[list[int]] = problem["outputs"]
        self.groups: list[int] = problem["groups"]
        self.links: list[int] = problem["links"]
        self.limit: int = problem["max_operands"]
        self.constants = set(problem["constants"])
        self.results = set(problem["results"])
        owner = {v: node for node, made in enumerate(self.outputs) for v in made}
        self.owner = owner
        self.readers: dict[int, set[int]] = {}
        self.before: list[set[int]] = []
        for node, read in enumerate(self.inputs):
            self.before.append({owner[v] for v in read if v in owner})
            for variable in read:
                self.readers.setdefault(variable, set()).add(node)
        for earlier, later in problem["orderings"]:
            self.before[later].add(earlier)

    def operands(self, kernel: set[int]) -> tuple[int, set[int], set[int]]:
        """Return how many operands a kernel has, and the arrays that it reads and writes."""
        made = {v for node in kernel for v in self.outputs[node]}
        read = {v for node in kernel for v in self.inputs[node]} - made
        left = {v for v in made if v in self.results or self.readers.get(v, set()) - kernel}
        return len(read) + len(left), read - self.constants, left

    def is_connected(self, kernel: set[int]) -> bool:
        """Return whether data or operands that bring siblings together connect the nodes."""
        (first, *_) = sorted(kernel)
        reached, stack = {first}, [first]
        while stack:
            node = stack.pop()
            near = {self.owner[v] for v in self.inputs[node] if v in self.owner}
            for made in self.outputs[node]:
                near |= self.readers.get(made, set())
            for read in self.inputs[node]:
                if self.links[read] == self.groups[node]:
                    near |= self.readers[read]
            fresh = (near & kernel) - reached
            reached |= fresh
            stack += sorted(fresh)
        return reached == kernel

    def is_acyclic(self, clusters: Clusters) -> bool:
        """Return whether the kernels and all other nodes can be put in an order."""
        name = list(range(len(self.inputs)))
        for cluster in clusters:
            for node in cluster:
                name[node] = min(cluster)
        waits: dict[int, set[int]] = {block: set() for block in name}
        for node, before in enumerate(self.before):
            waits[name[node]] |= {name[other] for other in before} - {name[node]}
        while True:
            free = {block for block, others in waits.items() if not others}
            if not free:
                return not waits
            waits = {block: others - free for block, others in waits.items() if others}

    def kernels(self, clusters: Clusters) -> list[set[int]]:
        """Return the kernels of a legal plan, those of one node among them.

        Raises
        ------
        ValueError
            If the plan is not legal; says why.
        """
        fused = [node for cluster in clusters for node in cluster]
        if len(fused) != len(set(fused)):
            raise ValueError("a node is in two kernels")
        for cluster in clusters:
            groups = {self.groups[node] for node in cluster}
            if len(groups) != 1 or -1 in groups:
                raise ValueError(f"{cluster} has the groups {sorted(groups)}")
            n_operands, _, _ = self.operands(set(cluster))
            if len(cluster) > 1 and n_operands > self.limit:
                raise ValueError(f"{cluster} has {n_operands} operands")
            if not self.is_connected(set(cluster)):
                raise ValueError(f"{cluster} is not connected")
        if not self.is_acyclic(clusters):
            raise ValueError("the kernels make a cycle")
        alone = set(range(len(self.groups))) - set(fused)
        return [set(c) for c in clusters] + [{n} for n in alone if self.groups[n] >= 0]

    def cost(self, clusters: Clusters) -> tuple[int, int]:
        """Return the kernels and arrays of a legal plan; raises as `kernels` does."""
        kernels = self.kernels(clusters)
        moved = [self.operands(kernel)[1:] for kernel in kernels]
        return len(kernels), sum(len(read) + len(written) for read, written in moved)


def plan(problem: dict[str, Any], effort: int | None) -> tuple[Clusters, Cost, Cost | None]:
    """Return our clusters, their cost, and the bound if there is an effort."""

    def rows(lists: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        offsets = np.cumsum([0, *map(len, lists)], dtype=np.uint32)
        return offsets, np.array([i for row in lists for i in row], dtype=np.uint32)

    n_variables = len(problem["links"])
    flags = {}
    for name in ("constants", "results"):
        flags[name] = np.zeros(n_variables, dtype=bool)
        flags[name][problem[name]] = True
    input_offsets, inputs = rows(problem["inputs"])
    output_offsets, outputs = rows(problem["outputs"])
    offsets, nodes, _, after, bound = _core.plan_arrays(
        n_variables=n_variables,
        input_offsets=input_offsets,
        inputs=inputs,
        output_offsets=output_offsets,
        outputs=outputs,
        groups=np.array(problem["groups"], dtype=np.int32),
        links=np.array(problem["links"], dtype=np.int32),
        max_operands=problem["max_operands"],
        orderings=[(a, b) for a, b in problem["orderings"]],
        effort=effort,
        **flags,
    )
    return _lists(offsets.tolist(), nodes.tolist()), after, bound


# Where problems come from -----------------------------------------------------------------


def generated() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield problems of the families that planners differ on, the same ones each time."""
    for family in (chain, diamonds, ladder, fan, strands, hubs, long_skips, ordered):
        for size, limit in ((12, 1024), (24, 1024), (40, 1024), (56, 1024), (24, 8), (40, 10)):
            rng = random.Random(f"{family.__name__} {size} {limit}")
            name = f"{family.__name__}-{size}" + (f"-limit-{limit}" if limit < 1024 else "")
            yield name, f"generated: {family.__doc__}", family(rng, size, limit)


class Builder:
    """A problem that grows; variables 0, 1 and 2 come from outside."""

    def __init__(self, limit: int) -> None:
        self.problem: dict[str, Any] = {
            "inputs": [],
            "outputs": [],
            "groups": [],
            "links": [0, 0, -1],
            "constants": [2],
            "orderings": [],
            "max_operands": limit,
        }

    def node(self, group: int, *reads: int) -> int:
        """Add a node and return the variable that it makes."""
        made = len(self.problem["links"])
        self.problem["inputs"].append([max(read, 0) for read in reads])
        self.problem["outputs"].append([made])
        self.problem["groups"].append(group)
        self.problem["links"].append(group)
        return made

    def done(self) -> dict[str, Any]:
        """Return the problem; what is not read is a result."""
        read = {variable for row in self.problem["inputs"] for variable in row}
        n_variables = len(self.problem["links"])
        self.problem["results"] = [v for v in range(3, n_variables) if v not in read]
        return self.problem


def chain(rng: random.Random, size: int, limit: int) -> dict[str, Any]:
    """a chain with barriers now and then, and inputs from a few steps back"""
    build = Builder(limit)
    last = [0, 1]
    for _ in range(size):
        group = -1 if rng.random() < 0.2 else 0
        last.append(build.node(group, last[-1], rng.choice(last[-6:])))
    return build.done()


def diamonds(rng: random.Random, size: int, limit: int) -> dict[str, Any]:
    """diamonds in a row, one side of each a barrier at times"""
    build = Builder(limit)
    last = 0
    while len(build.problem["groups"]) < size:
        left = build.node(0, last)
        right = build.node(-1 if rng.random() < 0.4 else 0, last, 2)
        side = build.node(0, left, 1)
        last = build.node(0, side if rng.random() < 0.5 else left, right)
    return build.done()


def ladder(rng: random.Random, size: int, limit: int) -> dict[str, Any]:
    """two rails of two groups, with rungs that lead from one to the other"""
    build = Builder(limit)
    left, right = [0], [1]
    while len(build.problem["groups"]) < size:
        left.append(build.node(0, left[-1], rng.choice(right[-2:])))
        right.append(build.node(1, right[-1], rng.choice(left[-3:])))
    return build.done()


def fan(rng: random.Random, size: int, limit: int) -> dict[str, Any]:
    """many readers of one operand, some of which need sums of others"""
    build = Builder(limit)
    made = [0]
    while len(build.problem["groups"]) < size:
        item = build.node(0, 0, rng.choice(made))
        made.append(build.node(-1, item) if rng.random() < 0.3 else item)
    return build.done()


def strands(rng: random.Random, size: int, limit: int) -> dict[str, Any]:
    """three strands that exchange sums"""
    build = Builder(limit)
    ends = [0, 1, 0]
    while len(build.problem["groups"]) < size:
        strand = rng.randrange(3)
        group = -1 if rng.random() < 0.25 else 0
        ends[strand] = build.node(group, ends[strand], ends[rng.randrange(3)])
    return build.done()


def hubs(rng: random.Random, size: int, limit: int) -> dict[str, Any]:
    """a few variables that half of all nodes read"""
    build = Builder(limit)
    made = [0, 1]
    while len(build.problem["groups"]) < size:
        group = -1 if rng.random() < 0.2 else rng.randrange(2)
        hub = rng.choice(made[:4]) if rng.random() < 0.5 else rng.choice(made[-5:])
        made.append(build.node(group, made[-1 - rng.randrange(min(4, len(made)))], hub))
    return build.done()


def long_skips(rng: random.Random, size: int, limit: int) -> dict[str, Any]:
    """a local graph with inputs from anywhere"""
    build = Builder(limit)
    made = [0, 1]
    while len(build.problem["groups"]) < size:
        group = -1 if rng.random() < 0.25 else 0
        skip = rng.choice(made) if rng.random() < 0.3 else rng.choice(made[-4:])
        made.append(build.node(group, made[-1 - rng.randrange(min(3, len(made)))], skip))
    return build.done()


def ordered(rng: random.Random, size: int, limit: int) -> dict[str, Any]:
    """strands with orders beside the data flow, as in-place nodes have them"""
    problem = strands(rng, size, limit)
    nodes = range(1, len(problem["groups"]))
    picks = [(rng.randrange(node), node) for node in nodes if rng.random() < 0.15]
    problem["orderings"] = sorted(map(list, picks))
    return problem


def of_pytensor() -> Iterator[tuple[str, str, dict[str, Any], Clusters]]:
    """Yield problems of PyTensor's graphs, with stock's plans."""
    import models
    from pytensor_fuse._fusion.extract import extract
    from pytensor_fuse._fusion.extract import plan as plan_extracted
    from pytensor_fuse._pytensor.ops.targets import max_operands, resolve_target

    for name, source, make in [*models.MODELS, *models.compiled_models()]:
        fgraph = make()
        target = resolve_target("c", fgraph)
        graph = extract(fgraph)
        clusters = plan_extracted(graph, target, max_operands(target))
        problem = problem_of(clusters.problem())
        judge = Judge(problem)
        ours = judge.cost([nodes for nodes, _, _ in clusters.clusters()])
        # Elemwise nodes that cannot be fused are kernels of every plan, and not of the problem.
        given = (clusters.after[0] - ours[0], clusters.after[1] - ours[1])
        ids = {node: i for i, node in enumerate(graph.arrays.nodes)}
        found = models.stock(fgraph)
        stock = sorted(sorted(ids[node] for node in kernel.nodes) for kernel in found.kernels)
        kernels, arrays = judge.cost(stock)
        assert (kernels + given[0], arrays + given[1]) == (found.kernels_after, found.arrays_after)
        yield name, source, problem, stock


def problem_of(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return what ``FusedClusters.problem`` says, as the files of the corpus have it."""
    return {
        "inputs": _lists(arrays["input_offsets"], arrays["inputs"]),
        "outputs": _lists(arrays["output_offsets"], arrays["outputs"]),
        "groups": arrays["groups"],
        "links": arrays["links"],
        "constants": [i for i, flag in enumerate(arrays["constants"]) if flag],
        "results": [i for i, flag in enumerate(arrays["results"]) if flag],
        "orderings": [list(pair) for pair in arrays["orderings"]],
        "max_operands": arrays["max_operands"],
    }


def _lists(offsets: Sequence[int], items: Sequence[int]) -> list[list[int]]:
    return [list(items[start:end]) for start, end in pairwise(offsets)]


def regenerate() -> None:
    """Write all files anew."""
    found: list[tuple[str, str, dict[str, Any], Clusters | None]] = [
        *((*each, None) for each in generated()),
        *of_pytensor(),
    ]
    CORPUS.mkdir(exist_ok=True)
    for old in CORPUS.glob("*.json"):
        old.unlink()
    for name, source, problem, stock in found:
        record: dict[str, Any] = {"name": name, "source": source, "stock": None}
        if stock is not None:
            record["stock"] = {"plan": stock, "cost": Judge(problem).cost(stock)}
        clusters, cost, bound = plan(problem, EFFORT)
        record["best"] = {"plan": clusters, "cost": cost, "bound": bound}
        record["problem"] = problem
        text = json.dumps(record, separators=(",", ":"))
        (CORPUS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


# Checking ---------------------------------------------------------------------------------


@dataclass
class Row:
    """A line of the table.

    Attributes
    ----------
    stock, fast, best, bound
        The costs of stock's plan, of the fast one and of the best one, and the bound.
    seconds
        The processor time of the search; 0 if there was none.
    wrong
        Contradictions of the record.
    """

    name: str
    nodes: int
    fusable: int
    stock: Cost | None
    fast: Cost
    best: Cost
    bound: Cost
    seconds: float
    wrong: list[str]


def check(path: Path, *, quick: bool) -> Row:
    """Judge what is recorded of a problem, and plans that are made now."""
    record = json.loads(path.read_text(encoding="utf-8"))
    problem, judge = record["problem"], Judge(record["problem"])
    wrong: list[str] = []

    def expect(is_true: bool, text: str) -> None:
        if not is_true:
            wrong.append(f"{path.name}: {text}")

    def judged(clusters: Clusters, claimed: Cost) -> None:
        try:
            cost = judge.cost(clusters)
            expect(cost == claimed, f"costs {cost}, not {claimed}")
        except ValueError as error:
            expect(False, str(error))

    known = record["best"]
    cost, bound = tuple(known["cost"]), tuple(known["bound"])
    judged(known["plan"], cost)
    expect(bound <= cost, "the bound is more than the best plan costs")
    clusters, fast, _ = plan(problem, None)
    judged(clusters, fast)
    # If the search was over too soon, the fast plan may be better by now; if not, never.
    expect(fast >= bound, f"a plan of {fast} is better than the bound {bound}")
    stock: Cost | None = None
    if record["stock"] is not None:
        stock = tuple(record["stock"]["cost"])
        judged(record["stock"]["plan"], stock)
        expect(bound <= stock, "stock's plan is better than the bound")
        expect(fast <= stock, "stock's plan is better")
    seconds = 0.0
    if not quick:
        start = time.thread_time()
        clusters, best, least = plan(problem, EFFORT)
        seconds = time.thread_time() - start
        judged(clusters, best)
        is_same = best == cost and least == bound
        expect(is_same, f"found {best} and {least}, not {cost}, {bound}")
    fusable = sum(group >= 0 for group in problem["groups"])
    n_nodes = len(problem["groups"])
    return Row(record["name"], n_nodes, fusable, stock, fast, cost, bound, seconds, wrong)


def _show(cost: Cost | None) -> str:
    return "-" if cost is None else " / ".join(map(str, cost))


def _line(name: str, nodes: object, fusable: object, cells: Sequence[str]) -> str:
    shown = "".join(f"{cell:>10}" for cell in cells)
    return f"{name:36}{nodes:>6}{fusable:>8}{shown}"


def _sum(costs: Iterable[Cost]) -> Cost:
    return tuple(sum(column) for column in zip(*costs, strict=True))


def _above(costs: Cost, least: Cost) -> str:
    return ", ".join(f"{100 * (a / b - 1):.2f} %" for a, b in zip(costs, least, strict=True))


def _summary(rows: Sequence[Row]) -> str:
    """Return the totals over all problems as text."""
    solved = [row for row in rows if row.best == row.bound]
    small = [row for row in rows if row.fusable <= SMALL]
    n_small_solved = sum(row.fusable <= SMALL for row in solved)
    equal = sum(row.fast[0] == row.best[0] for row in rows)
    fast, best, bound = (
        _sum(getattr(row, name) for row in rows) for name in ("fast", "best", "bound")
    )
    stock = _sum(row.stock for row in rows if row.stock is not None)
    ours = _sum(row.fast for row in rows if row.stock is not None)
    lines = [
        f"{len(solved)} of {len(rows)} problems solved, {n_small_solved} of the {len(small)} of up "
        f"to {SMALL} fusable nodes; on {equal} the fast plan has as many kernels as the best",
        f"  in all: fast {_show(fast)}, best {_show(best)}, bound {_show(bound)}",
        f"  the fast plans are {_above(fast, best)} above the best, these {_above(best, bound)} "
        "above the bound",
        f"  of PyTensor's graphs: stock {_show(stock)}, fast {_show(ours)}",
    ]
    if slowest := max(row.seconds for row in rows):
        lines.append(f"  the longest search took {slowest:.2f} s of a processor")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says, and return the exit status."""
    if unknown := set(arguments) - {"--quick", "--regenerate"}:
        print(f"unknown arguments {sorted(unknown)}\n\n{__doc__}", file=sys.stderr)
        return 2
    if "--regenerate" in arguments:
        regenerate()
    rows = [check(path, quick="--quick" in arguments) for path in sorted(CORPUS.glob("*.json"))]
    if not rows:
        return 1
    print(_line("problem", "nodes", "fusable", ["stock", "fast", "best", "bound"]))
    for row in rows:
        cells = [_show(cost) for cost in (row.stock, row.fast, row.best, row.bound)]
        print(_line(row.name, row.nodes, row.fusable, cells))
    print(f"\n{_summary(rows)}")
    wrong = [text for row in rows for text in row.wrong]
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
