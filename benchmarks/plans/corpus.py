"""Fusion problems that anyone can check: plan them, judge the plans, print a table.

    python -m benchmarks.plans.corpus                # plan all problems, check what is recorded
    python -m benchmarks.plans.corpus --quick        # the same without the search for the best plan
    python -m benchmarks.plans.corpus --regenerate   # make the files anew; asks for PyMC

Each file of ``benchmarks/corpus`` holds one problem as integer arrays, where it comes from, stock
PyTensor's plan and what it costs if it is one of PyTensor's graphs, and for each of two objectives
the best plan known, what it costs, and what no plan is cheaper than. A problem is solved if these
two are equal. `Judge` decides whether a plan is legal and what it costs; it shares nothing with the
planner. The exit status is 1 if anything is not as it is recorded.

The arrays are those of ``plan_arrays``: node ``i`` reads ``inputs[i]`` and makes ``outputs[i]``; it
may be fused with others of its group (-1: with none) that it reads or is read by, or with which it
shares an operand whose link is that group. Constants are no arrays. A kernel of several nodes has
at most ``max_operands`` distinct inputs and outputs. All kernels together leave the graph, with the
orderings, without cycles.

*Kernels*: fewest kernels is best, then fewest arrays that they read and write. *Traffic*: the least
sum, over all kernels, of the weights of these arrays and ``launch`` for each kernel. Weights are
bytes: of an array whose static shape is known as many as it has, of any other as many as 1,000
elements of its dtype have, whatever its dimensions are. So the two kinds can be added up: one such
array is one unit, and what is known to be smaller counts less. Where no shape is known, arrays are
counted. Of generated problems, each group has a length of its own, and what is no part of a kernel
makes mostly single numbers, as sums do. A kernel counts 4,096 bytes, as in ``objectives.py``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring import tables
from benchmarks.plans.generated import generated
from benchmarks.plans.judge import Clusters, Cost, Judge
from benchmarks.plans.problems import plan

CORPUS = Path(__file__).parents[1] / "corpus"
EFFORT = 4_000_000
OBJECTIVES = ("kernels", "traffic")

# What is to be solved has up to so many fusable nodes.
SMALL = 60


def regenerate() -> None:
    """Write all files anew."""
    from benchmarks.plans.of_pytensor import of_pytensor

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
            record["stock"] = {"plan": stock, **Judge(problem).costs(stock)}
        for objective in OBJECTIVES:
            clusters, cost, bound = plan(problem, EFFORT, objective)
            record[objective] = {"plan": clusters, "cost": cost, "bound": bound}
        record["problem"] = problem
        text = json.dumps(record, separators=(",", ":"))
        (CORPUS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


# Checking ---------------------------------------------------------------------------------


@dataclass
class Row:
    """A line of the table.

    Attributes
    ----------
    costs
        For each objective what stock's plan costs, the fast one and the best one, and the bound.
    seconds
        For each objective how long the search took, of the processor; 0 if there was none.
    wrong
        What is not as recorded.
    """

    name: str
    nodes: int
    fusable: int
    costs: dict[str, tuple[Cost | None, Cost, Cost, Cost]]
    seconds: dict[str, float]
    wrong: list[str]


def check(path: Path, *, quick: bool) -> Row:
    """Judge what is recorded of a problem, and plans that are made now."""
    record = json.loads(path.read_text(encoding="utf-8"))
    problem, judge = record["problem"], Judge(record["problem"])
    fusable = sum(group >= 0 for group in problem["groups"])
    row = Row(record["name"], len(problem["groups"]), fusable, {}, {}, [])

    def expect(is_true: bool, text: str) -> None:
        if not is_true:
            row.wrong.append(f"{path.name}: {text}")

    def judged(clusters: Clusters, objective: str, claimed: Cost) -> None:
        try:
            cost = judge.costs(clusters)[objective]
            expect(cost == claimed, f"costs {cost} by {objective}, not {claimed}")
        except ValueError as error:
            expect(False, str(error))

    stock: dict[str, Any] | None = record["stock"]
    for objective in OBJECTIVES:
        known = record[objective]
        cost, bound = tuple(known["cost"]), tuple(known["bound"])
        judged(known["plan"], objective, cost)
        expect(bound <= cost, f"the bound of {objective} is more than the plan costs")
        clusters, fast, _ = plan(problem, None, objective)
        judged(clusters, objective, fast)
        # If the search was over too soon, the fast plan may be better by now; if not, never.
        expect(fast >= bound, f"a plan of {fast} is better than the bound {bound} of {objective}")
        of_stock = None
        if stock is not None:
            of_stock = tuple(stock[objective])
            judged(stock["plan"], objective, of_stock)
            expect(bound <= of_stock, f"stock's plan is better than the bound of {objective}")
            expect(objective != "kernels" or fast <= of_stock, "stock's plan is better")
        row.costs[objective] = of_stock, fast, cost, bound
        row.seconds[objective] = 0.0
        if not quick:
            start = time.thread_time()
            clusters, best, least = plan(problem, EFFORT, objective)
            row.seconds[objective] = time.thread_time() - start
            judged(clusters, objective, best)
            is_same = best == cost and least == bound
            expect(is_same, f"{objective}: found {best} and {least}, not {cost}, {bound}")
    return row


def _show(cost: Cost | None) -> str:
    return "-" if cost is None else " / ".join(map(str, cost))


def _sum(costs: Iterable[Cost]) -> Cost:
    return tuple(sum(column) for column in zip(*costs, strict=True))


def _above(costs: Cost, least: Cost) -> str:
    return ", ".join(f"{100 * (a / b - 1):.2f} %" for a, b in zip(costs, least, strict=True))


def _summary(rows: Sequence[Row], objective: str) -> str:
    """What the problems come to by an objective."""
    all_costs = [row.costs[objective] for row in rows]
    solved = [row for row in rows if row.costs[objective][2] == row.costs[objective][3]]
    small = [row for row in rows if row.fusable <= SMALL]
    n_small_solved = sum(row.fusable <= SMALL for row in solved)
    equal = sum(fast[0] == best[0] for _, fast, best, _ in all_costs)
    fast, best, bound = (_sum(costs[i] for costs in all_costs) for i in (1, 2, 3))
    stock = _sum(cost for cost, *_ in all_costs if cost is not None)
    ours = _sum(fast for cost, fast, *_ in all_costs if cost is not None)
    as_good = {"kernels": "many kernels", "traffic": "little traffic"}[objective]
    lines = [
        f"{objective}: {len(solved)} of {len(rows)} problems solved, {n_small_solved} of the "
        f"{len(small)} of up to {SMALL} fusable nodes; on {equal} the fast plan has as {as_good} "
        "as the best",
        f"  in all: fast {_show(fast)}, best {_show(best)}, bound {_show(bound)}",
        f"  the fast plans are {_above(fast, best)} above the best, these {_above(best, bound)} "
        "above the bound",
        f"  of PyTensor's graphs: stock {_show(stock)}, fast {_show(ours)}",
    ]
    if slowest := max(row.seconds[objective] for row in rows):
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
    plans = ["stock", "fast", "best", "bound"]
    groups = {"kernels / arrays": plans, "bytes": plans}
    headings = tables.grouped(["problem", "nodes", "fusable"], groups, [])
    cells = [
        [row.name, str(row.nodes), str(row.fusable)]
        + [_show(cost) for objective in OBJECTIVES for cost in row.costs[objective]]
        for row in rows
    ]
    print(tables.aligned(headings, cells, left=1), end="")
    for objective in OBJECTIVES:
        print(f"\n{_summary(rows, objective)}")
    wrong = [text for row in rows for text in row.wrong]
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
