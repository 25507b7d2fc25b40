"""Fusion problems that anyone can check: plan them, judge the plans, print a table.

    python -m benchmarks.plans.corpus                # plan all problems, check what is recorded
    python -m benchmarks.plans.corpus --quick        # the same without the search for the best plan
    python -m benchmarks.plans.corpus --regenerate   # make the files anew; asks for PyMC

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

# Problems of up to this many fusable nodes are to be solved.
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
    groups = {"kernels / arrays": ["stock", "fast", "best", "bound"]}
    headings = tables.grouped(["problem", "nodes", "fusable"], groups, [])
    cells = [
        [row.name, str(row.nodes), str(row.fusable)]
        + [_show(cost) for cost in (row.stock, row.fast, row.best, row.bound)]
        for row in rows
    ]
    print(tables.aligned(headings, cells, left=1), end="")
    print(f"\n{_summary(rows)}")
    wrong = [text for row in rows for text in row.wrong]
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
