"""What runs once, and functions that call SciPy's optimizers: the wait with empty directories.

    python -m benchmarks.native.once                                  # everything: some minutes
    python -m benchmarks.native.once --only eigenvalues --rounds 1    # one case

Each measurement is a process of its own, stock and ours in turn. Times are those of the processor,
of child processes as well: importing PyTensor or PyMC and building the graph come before.

eigenvalues            `eval()` of an expression in which one op has no rule
hypergeometric         `pm.draw` of one draw of ten numbers
initial-radon, -lkj    `Model.initial_point()`
root, minimize         `pytensor.function` of a loss of the solution with its gradient, and the
                       first call; then the median of 50 later calls
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measuring.processes import AS_USERS, run_in_turns, samples
from benchmarks.measuring.results import assert_same_reported
from benchmarks.native.child import Stopwatch
from benchmarks.native.figures import Figure, arguments, report, sides_of

N_CALLS = 50
# Results of optimizers are as exact as their tolerance.
TOLERANCE = 1e-5

# What runs once; and what is called again, if it is a function.
Case = tuple[Callable[[], Any], Callable[[], Any] | None]


def eigenvalues() -> Case:
    import pytensor.tensor as pt

    x = pt.matrix("x")
    value = np.random.default_rng(1).normal(size=(10, 10))
    return lambda: np.sort(pt.linalg.eig(pt.exp(x))[0].eval({x: value}).real), None


def hypergeometric() -> Case:
    import pymc as pm

    return lambda: pm.draw(pm.HyperGeometric.dist(50, 20, 10, shape=10), random_seed=1), None


def initial(name: str) -> Case:
    from benchmarks.graphs.pymc_models import MODELS

    model = MODELS[name].pymc()
    return lambda: np.concatenate([np.ravel(one) for one in model.initial_point().values()]), None


def optimizer(name: str) -> Case:
    import pytensor
    import pytensor.tensor as pt
    from pytensor.tensor.optimize import minimize, root

    x, a = pt.vector("x", shape=(20,)), pt.vector("a", shape=(20,))
    if name == "root":
        solution, _ = root(x + 0.3 * pt.tanh(x[::-1] * x) - pt.exp(-a * x), x)
    else:
        objective = ((x - a) ** 2).sum() + pt.log1p((x**4).sum())
        solution, _ = minimize(objective + ((x[1:] - x[:-1]) ** 2).sum(), x, method="BFGS")
    loss = (solution**2).sum()
    gradient = pt.grad(loss, a)
    start, values = np.full(20, 0.5), np.linspace(0.5, 2, 20)
    compiled: list[Any] = []

    def first() -> Any:
        compiled.append(pytensor.function([x, a], [loss, gradient]))
        return np.append(*reversed(compiled[0](start, values)))

    return first, lambda: compiled[0](start, values)


CASES: dict[str, Callable[[], Case]] = {
    "eigenvalues": eigenvalues,
    "hypergeometric": hypergeometric,
    "initial-radon": partial(initial, "radon"),
    "initial-lkj": partial(initial, "lkj"),
    "root": partial(optimizer, "root"),
    "minimize": partial(optimizer, "minimize"),
}


def measured(name: str, side: str) -> dict[str, Any]:
    """Measure a case in this process."""
    if side == "ours":
        import pytensor_fuse  # noqa: F401 - the import is what is wanted
    once, again = CASES[name]()
    watch = Stopwatch()
    result = once()
    found: dict[str, Any] = {**watch.lap("once"), "results": [np.asarray(result).tolist()]}
    if again is not None:
        times = []
        for _ in range(N_CALLS):
            watch = Stopwatch(collect=False)
            again()
            times.append(watch.lap("call")["call"])
        found["call"] = statistics.median(times)
    return found


def main() -> None:
    options = arguments(__doc__, rounds=3).parse_args()
    sides = [side for side in sides_of(options.sides) if side != "jax"]
    figures = []
    for name in options.only or CASES:
        function = "benchmarks.native.once:measured"
        settings = {"sides": sides, "rounds": options.rounds, "variables": AS_USERS}
        results = run_in_turns(function, name, **settings)
        assert_same_reported(results, allowed=TOLERANCE)
        figures.append(Figure("once", name, "s", samples(results, "once")))
        if "call" in results[sides[0]][0]:
            figures.append(Figure("each later call", name, "ms", samples(results, "call")))
    report(figures)


if __name__ == "__main__":
    main()
