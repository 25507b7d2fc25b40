"""How long a call of a compiled model takes, stock, ours and JAX in one process.

    python -m benchmarks.native.calls                               # some minutes
    python -m benchmarks.native.calls --only radon --rounds 7       # seconds, once compiled
    python -m benchmarks.native.calls --only radon --sizes own --sides stock,ours

The results of all sides are compared before anything is timed. Each call is one of a batch of some
milliseconds; the sides take turns, and the figure is the median of the rounds' ratios. Times are
those of the processor. Compile directories are the user's own: only calls are timed.
"""

from __future__ import annotations

import os

from benchmarks.measuring.processes import ONE_THREAD

# Before NumPy, Numba or JAX is imported.
if __name__ == "__main__":
    os.environ.update(ONE_THREAD)

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.executor import Function

import pytensor_fuse
from benchmarks.measuring import turns
from benchmarks.measuring.results import ROUNDING, ROUNDING_OF_JAX, assert_same
from benchmarks.native.figures import Figure, arguments, report, say, sides_of
from benchmarks.native.models import FIVE, MATRICES, Model, chosen

STEPS = ("scalar-steps", "vector-steps", "matrix-steps")
OWN_CALL = dict(
    zip(
        (*FIVE, *MATRICES[:-1], *STEPS),
        (1.8, 2.5, 4, 4, 3, 1.3, 2, 2, 2, 3, 2, 3),
        strict=True,
    )
)
OWN_JIT = dict.fromkeys(FIVE, 1.0)
MANY_CALL = dict(zip((*FIVE, "gaussian-process"), (1.0, 4, 3, 4, 2, 1.0), strict=True))
OF_JAX = 1.5


def side_is_on(side: str) -> AbstractContextManager[None]:
    """The block in which a side compiles and is called: the package off, or as it is."""
    return nullcontext() if side == "ours" else pytensor_fuse.enabled(False)


def compiled(inputs: Sequence[Any], outputs: Sequence[Any], side: str) -> Function:
    mode = "JAX" if side == "jax" else None
    with side_is_on(side), pytensor_fuse.enabled(False, "cache"):
        return pytensor.function(list(inputs), list(outputs), mode=mode)


def compiled_sides(
    model: Model, rows: int | None, sides: Sequence[str]
) -> tuple[dict[str, Function], list[np.ndarray]]:
    """A function for each side, and values for them, with which all give the same.

    Raises
    ------
    AssertionError
        If two sides differ by more than rounding, in a function or in its ``jit_fn``.
    """
    inputs, outputs, values = model.graph(rows)
    # JAX's mode says that it leaves checks out, when it is first called.
    warnings.filterwarnings("ignore", message="Skipping Check")
    functions = {side: compiled(inputs, outputs, side) for side in sides}
    expected: list[np.ndarray] | None = None
    for side, function in functions.items():
        allowed = ROUNDING_OF_JAX if side == "jax" else ROUNDING
        with side_is_on(side):
            for what, call in (("f", function), ("f.vm.jit_fn", function.vm.jit_fn)):
                results = [np.asarray(result) for result in call(*values)]
                expected = expected or results
                what = f"{what} of {model.name}, {side},"
                assert_same(results, expected, allowed=allowed, what=what)
    return functions, values


def finished(call: Callable[..., Any], side: str) -> Callable[..., Any]:
    """The call, which returns when its results are there: JAX's arrays may still be computed."""
    if side != "jax":
        return call
    from jax import block_until_ready

    return lambda *values: block_until_ready(call(*values))


# Seconds of a call by side, in each round.
call_times = partial(turns.call_times, batch=0.01, warm_calls=5, within=side_is_on)


def figures(model: Model, sides: Sequence[str], rounds: int, size: str = "own") -> list[Figure]:
    """Calls of ``f`` and of ``f.vm.jit_fn`` at a size, "own" or "many"."""
    rows = model.rows if size == "own" else model.many
    assert rows is not None, f"{model.name} has no larger size"
    functions, values = compiled_sides(model, rows, sides)
    of_call, of_jit = {"own": (OWN_CALL, OWN_JIT), "many": (MANY_CALL, {})}[size]
    kinds: dict[str, tuple[Callable[[Function], Callable[..., Any]], dict[str, float]]] = {
        "f(*args)": (lambda f: f, of_call),
        "f.vm.jit_fn(*args)": (lambda f: f.vm.jit_fn, of_jit),
    }
    found = []
    for what, (called, floors) in kinds.items():
        calls = {side: finished(called(f), side) for side, f in functions.items()}
        floor = floors.get(model.name)
        of_jax = OF_JAX if floor and model.name in FIVE else None
        times = call_times(calls, values, rounds)
        found.append(Figure(f"{what}, {rows:,} rows", model.name, "us", times, floor, of_jax))
    return found


def main() -> None:
    parser = arguments(__doc__, rounds=21)
    parser.add_argument("--sizes", default="own,many")
    options = parser.parse_args()
    sides = sides_of(options.sides)
    found = []
    for model in chosen(options.only):
        for size in options.sizes.split(","):
            if size not in {"own", "many"}:
                raise SystemExit(f"no size is called {size!r}; there are own and many")
            if size == "many" and model.many is None:
                continue
            say(f"{model.name}, {size}")
            of_model = figures(model, sides, options.rounds, size)
            say("\n".join(" | ".join(figure.cells()) for figure in of_model))
            found += of_model
    report(found)


if __name__ == "__main__":
    main()
