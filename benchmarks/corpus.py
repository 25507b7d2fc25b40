"""Fusion problems that anyone can check: plan them, judge the plans, print a table.

    python benchmarks/corpus.py                 # plan all problems and check what is recorded
    python benchmarks/corpus.py --quick         # the same without the search for the best plan
    python benchmarks/corpus.py --regenerate    # make the files anew

Each file of ``benchmarks/corpus`` holds one problem as integer arrays, where it comes from, what
stock PyTensor makes of it if it is one of PyTensor's graphs, the best plan known, and what no plan
is cheaper than. A problem is solved if these two are equal. `Judge` decides whether a plan is legal
and what it costs; it shares nothing with the planner. The exit status is 1 if anything is not as it
is recorded.

The arrays are those of ``plan_arrays``: node ``i`` reads ``inputs[i]`` and makes ``outputs[i]``; it
may be fused with others of its group (-1: with none) that it reads or is read by, or with which it
shares an operand whose link is that group. Constants are no arrays. A kernel of several nodes has
at most ``max_operands`` distinct inputs and outputs. All kernels together leave the graph, with the
orderings, without cycles. Fewest kernels is best, then fewest arrays that they read and write.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pytensor_fuse import _core

CORPUS = Path(__file__).parent / "corpus"
EFFORT = 4_000_000

Cost = tuple[int, int]
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

    def operands(self, kernel: set[int]) -> tuple[int, int]:
        """Return the distinct operands of a kernel, and how many of them are arrays."""
        made = {v for node in kernel for v in self.outputs[node]}
        read = {v for node in kernel for v in self.inputs[node]} - made
        left = {v for v in made if v in self.results or self.readers.get(v, set()) - kernel}
        return len(read) + len(left), len(read - self.constants) + len(left)

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

    def cost(self, clusters: Clusters) -> Cost:
        """Return the kernels and arrays of a legal plan.

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
            n_operands, _ = self.operands(set(cluster))
            if len(cluster) > 1 and n_operands > self.limit:
                raise ValueError(f"{cluster} has {n_operands} operands")
            if not self.is_connected(set(cluster)):
                raise ValueError(f"{cluster} is not connected")
        if not self.is_acyclic(clusters):
            raise ValueError("the kernels make a cycle")
        alone = set(range(len(self.groups))) - set(fused)
        kernels = [set(c) for c in clusters] + [{n} for n in alone if self.groups[n] >= 0]
        return len(kernels), sum(self.operands(kernel)[1] for kernel in kernels)


def plan(problem: dict[str, Any], effort: int | None) -> tuple[Clusters, Cost, Cost | None]:
    """Return our clusters, what they cost, and the bound if there is an effort."""

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


def of_pytensor() -> Iterator[tuple[str, str, dict[str, Any], Cost]]:
    """Yield problems of PyTensor's graphs, with what stock's plan costs."""
    import models
    from pytensor_fuse._fusion.extract import extract
    from pytensor_fuse._fusion.extract import plan as plan_extracted
    from pytensor_fuse._pytensor.targets import max_operands, resolve_target

    for name, source, make in models.MODELS:
        fgraph = make()
        target = resolve_target("c", fgraph)
        clusters = plan_extracted(extract(fgraph), target, max_operands(target))
        problem = problem_of(clusters.problem())
        ours = Judge(problem).cost([nodes for nodes, _, _ in clusters.clusters()])
        # Elemwise nodes that cannot be fused are kernels of every plan, and not of the problem.
        given = (clusters.after[0] - ours[0], clusters.after[1] - ours[1])
        kernels, stock = models.stock(fgraph)
        yield name, source, problem, (kernels - given[0], stock - given[1])


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
    CORPUS.mkdir(exist_ok=True)
    for old in CORPUS.glob("*.json"):
        old.unlink()
    found: list[tuple[str, str, dict[str, Any], Cost | None]] = [
        *((*each, None) for each in generated()),
        *of_pytensor(),
    ]
    for name, source, problem, stock in found:
        clusters, cost, bound = plan(problem, EFFORT)
        record = {
            "name": name,
            "source": source,
            "stock": stock,
            "cost": cost,
            "bound": bound,
            "plan": clusters,
            "problem": problem,
        }
        text = json.dumps(record, separators=(",", ":"))
        (CORPUS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


# Checking ---------------------------------------------------------------------------------


def check(path: Path, *, quick: bool) -> tuple[list[Any], list[str]]:
    """Return a row of the table, and what is not as recorded."""
    record = json.loads(path.read_text(encoding="utf-8"))
    problem, judge = record["problem"], Judge(record["problem"])
    cost, bound = tuple(record["cost"]), tuple(record["bound"])
    wrong = []

    def expect(is_true: bool, text: str) -> None:
        if not is_true:
            wrong.append(f"{path.name}: {text}")

    def judged(clusters: Clusters, claimed: Cost) -> None:
        try:
            expect(judge.cost(clusters) == claimed, f"costs {judge.cost(clusters)}, not {claimed}")
        except ValueError as error:
            expect(False, str(error))

    judged(record["plan"], cost)
    expect(bound <= cost, "the bound is more than the plan costs")
    clusters, fast, _ = plan(problem, None)
    judged(clusters, fast)
    # If the search was over too soon, the fast plan may be better by now; if not, never.
    expect(fast >= bound, f"a plan of {fast} is better than the bound {bound}")
    if record["stock"] is not None:
        expect(fast <= tuple(record["stock"]), "stock's plan is better")
    if not quick:
        clusters, best, least = plan(problem, EFFORT)
        judged(clusters, best)
        expect(best == cost and least == bound, f"found {best} and {least}, not {cost}, {bound}")
    fusable = sum(group >= 0 for group in problem["groups"])
    return [
        record["name"],
        len(problem["groups"]),
        fusable,
        record["stock"],
        fast,
        cost,
        bound,
    ], wrong


def _show(cost: Cost | None) -> str:
    return "-" if cost is None else f"{cost[0]} / {cost[1]}"


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says, and return the exit status."""
    if unknown := set(arguments) - {"--quick", "--regenerate"}:
        print(f"unknown arguments {sorted(unknown)}\n\n{__doc__}", file=sys.stderr)
        return 2
    if "--regenerate" in arguments:
        regenerate()
    paths = sorted(CORPUS.glob("*.json"))
    checked = [check(path, quick="--quick" in arguments) for path in paths]
    print(
        f"{'problem':28}{'nodes':>6}{'fusable':>8}"
        + "".join(f"{name:>12}" for name in ("stock", "fast", "best", "bound"))
    )
    for (name, nodes, fusable, *costs), _ in checked:
        print(f"{name:28}{nodes:6}{fusable:8}" + "".join(f"{_show(cost):>12}" for cost in costs))
    rows = [row for row, _ in checked]
    solved = sum(row[5] == row[6] for row in rows)
    equal = sum(row[4][0] == row[5][0] for row in rows)
    kernels = [sum(row[i][0] for row in rows) for i in (4, 5)]
    arrays = [sum(row[i][1] for row in rows) for i in (4, 5)]
    print(
        f"\n{len(rows)} problems, {solved} solved; the fast plan has as many kernels as the best "
        f"on {equal}, in all {kernels[0]} and {kernels[1]}, arrays {arrays[0]} and {arrays[1]}"
    )
    wrong = [text for _, texts in checked for text in texts]
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
