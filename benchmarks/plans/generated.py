"""Generated problems: families that planners differ on."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any


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


def orderings_of(problem: dict[str, Any], rng: random.Random) -> list[list[int]]:
    """Orders beside the data flow."""
    nodes = range(1, len(problem["groups"]))
    return sorted([rng.randrange(node), node] for node in nodes if rng.random() < 0.15)


# Families: each adds a few nodes to a problem, by what has been made so far.


def chain(build: Builder, rng: random.Random, made: list[int]) -> None:
    """a chain with barriers now and then, and inputs from a few steps back"""
    group = -1 if rng.random() < 0.2 else 0
    made.append(build.node(group, made[-1], rng.choice(made[-6:])))


def diamonds(build: Builder, rng: random.Random, made: list[int]) -> None:
    """diamonds in a row, one side of each a barrier at times"""
    left = build.node(0, made[-1])
    right = build.node(-1 if rng.random() < 0.4 else 0, made[-1], 2)
    side = build.node(0, left, 1)
    made.append(build.node(0, side if rng.random() < 0.5 else left, right))


def ladder(build: Builder, rng: random.Random, made: list[int]) -> None:
    """two rails of two groups, with rungs that lead from one to the other"""
    made.append(build.node(0, made[-2], rng.choice(made[1::2][-2:])))
    made.append(build.node(1, made[-2], rng.choice(made[::2][-3:])))


def fan(build: Builder, rng: random.Random, made: list[int]) -> None:
    """many readers of one operand, some of which need sums of others"""
    item = build.node(0, 0, rng.choice(made))
    made.append(build.node(-1, item) if rng.random() < 0.3 else item)


def strands(build: Builder, rng: random.Random, made: list[int]) -> None:
    """three strands that exchange sums"""
    strand = rng.randrange(3)
    group = -1 if rng.random() < 0.25 else 0
    made[strand] = build.node(group, made[strand], made[rng.randrange(3)])


def hubs(build: Builder, rng: random.Random, made: list[int]) -> None:
    """a few variables that half of all nodes read"""
    group = -1 if rng.random() < 0.2 else rng.randrange(2)
    hub = rng.choice(made[:4]) if rng.random() < 0.5 else rng.choice(made[-5:])
    made.append(build.node(group, made[-1 - rng.randrange(min(4, len(made)))], hub))


def long_skips(build: Builder, rng: random.Random, made: list[int]) -> None:
    """a local graph with inputs from anywhere"""
    group = -1 if rng.random() < 0.25 else 0
    skip = rng.choice(made) if rng.random() < 0.3 else rng.choice(made[-4:])
    made.append(build.node(group, made[-1 - rng.randrange(min(3, len(made)))], skip))


def ordered(build: Builder, rng: random.Random, made: list[int]) -> None:
    """strands with orders beside the data flow, as in-place nodes have them"""
    strands(build, rng, made)


# And what there is at the start.
FAMILIES: dict[Callable[[Builder, random.Random, list[int]], None], list[int]] = {
    chain: [0, 1],
    diamonds: [0],
    ladder: [0, 1],
    fan: [0],
    strands: [0, 1, 0],
    hubs: [0, 1],
    long_skips: [0, 1],
    ordered: [0, 1, 0],
}


def generated() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield problems of the families that planners differ on, the same ones each time."""
    for family, start in FAMILIES.items():
        for size, limit in ((12, 1024), (24, 1024), (40, 1024), (56, 1024), (24, 8), (40, 10)):
            rng = random.Random(f"{family.__name__} {size} {limit}")
            name = f"{family.__name__}-{size}"
            name += f"-limit-{limit}" if limit < 1024 else ""
            build, made = Builder(limit), [*start]
            while len(build.problem["groups"]) < size:
                family(build, rng, made)
            problem = build.done()
            if family is ordered:
                problem["orderings"] = orderings_of(problem, rng)
            yield name, f"generated: {family.__doc__}", problem
