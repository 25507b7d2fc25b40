"""What runs once, and functions that call SciPy's optimizers: the wait with empty directories.

    python benchmarks/native_once.py                             # everything: a quarter of an hour
    python benchmarks/native_once.py --only sort --rounds 1      # one case

Each measurement is a process of its own, stock and ours in turn. Times are those of the processor,
of child processes as well: importing PyTensor or PyMC and building the graph come before.

sort, eigenvalues      `eval()` of an expression in which one op has no rule
normal, hypergeometric `pm.draw` of one draw of ten numbers
initial-radon, -lkj    `Model.initial_point()`
root, minimize         `pytensor.function` of a loss of the solution with its gradient, and the
                       first call; then the median of 50 later calls
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from native_child import Stopwatch
from native_figures import ONE_THREAD, Figure, arguments, in_turns, report, samples, sides_of

N_CALLS = 50
# Results of optimizers are as exact as their tolerance.
TOLERANCE = 1e-5


def sort() -> Callable[[], Any]:
    import pytensor.tensor as pt

    x = pt.vector("x")
    value = np.random.default_rng(1).normal(size=1000)
    return lambda: pt.sort(pt.exp(x) - 0.5).cumsum().eval({x: value})


def eigenvalues() -> Callable[[], Any]:
    import pytensor.tensor as pt

    x = pt.matrix("x")
    value = np.random.default_rng(1).normal(size=(10, 10))
    return lambda: np.sort(pt.linalg.eig(pt.exp(x))[0].eval({x: value}).real)


def normal() -> Callable[[], Any]:
    import pymc as pm

    return lambda: pm.draw(pm.Normal.dist(1, 2, shape=10), random_seed=1)


def hypergeometric() -> Callable[[], Any]:
    import pymc as pm

    return lambda: pm.draw(pm.HyperGeometric.dist(50, 20, 10, shape=10), random_seed=1)


def initial(name: str) -> Callable[[], Any]:
    from native_models import MODELS

    model = MODELS[name].pymc()
    return lambda: np.concatenate([np.ravel(one) for one in model.initial_point().values()])


def optimizer(name: str) -> Callable[[], Any]:
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

    def first() -> Any:
        function = pytensor.function([x, a], [loss, gradient])
        first.again = lambda: function(start, values)  # type: ignore[attr-defined]
        return np.append(*reversed(function(start, values)))

    return first


CASES: dict[str, Callable[[], Callable[[], Any]]] = {
    "sort": sort,
    "eigenvalues": eigenvalues,
    "normal": normal,
    "hypergeometric": hypergeometric,
    "initial-radon": lambda: initial("radon"),
    "initial-lkj": lambda: initial("lkj"),
    "root": lambda: optimizer("root"),
    "minimize": lambda: optimizer("minimize"),
}


def child(name: str, side: str) -> None:
    """Measure a case in this process, and print what was found."""
    if side == "ours":
        import pytensor_fuse  # noqa: F401 - the import is what is wanted
    run = CASES[name]()
    watch = Stopwatch()
    result = run()
    found: dict[str, Any] = {**watch.lap("once"), "results": np.asarray(result).tolist()}
    if (again := getattr(run, "again", None)) is not None:
        times = []
        for _ in range(N_CALLS):
            watch = Stopwatch(collect=False)
            again()
            times.append(watch.lap("call")["call"])
        found["call"] = statistics.median(times)
    print(json.dumps(found))


def measured(name: str, side: str) -> dict[str, Any]:
    """Measure a case in a new process with empty directories."""
    with tempfile.TemporaryDirectory(prefix="native-once-") as directory:
        environment = {
            **os.environ,
            **ONE_THREAD,
            "PYTENSOR_FLAGS": f"base_compiledir={directory}/pytensor",
            "NUMBA_CACHE_DIR": f"{directory}/numba",
            "PYTENSOR_FUSE": "1" if side == "ours" else "0",
        }
        line = [sys.executable, __file__, "--child", name, side]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(line)} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    options = arguments(__doc__, rounds=3).parse_args()
    sides = [side for side in sides_of(options.sides) if side != "jax"]
    figures = []
    for name in options.only or CASES:
        results = in_turns(sides, lambda side, name=name: measured(name, side), options.rounds)
        every = [np.asarray(one["results"]) for of_side in results.values() for one in of_side]
        for one in every:
            np.testing.assert_allclose(one, every[0], rtol=TOLERANCE, atol=TOLERANCE)
        figures.append(Figure("once", name, "s", samples(results, "once")))
        if "call" in next(iter(results.values()))[0]:
            figures.append(Figure("each later call", name, "ms", samples(results, "call")))
    report(figures, options)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
