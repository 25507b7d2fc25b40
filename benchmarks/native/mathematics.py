"""Models that are mostly mathematical functions, stock, ours and JAX in one process.

    python -m benchmarks.native.mathematics                          # ten minutes
    python -m benchmarks.native.mathematics --only weibull --rounds 7
    python -m benchmarks.native.mathematics --parts compile,products

Value and gradient on 10, 1,000 and many rows; what `native_math="vector"` adds to the time of a
compile with `native_math="libm"`; how long both products of a regression's data take in our loop,
and OpenBLAS; and a logistic regression beside its products by OpenBLAS and NumPy's exponentials.
"""

from __future__ import annotations

import os

from benchmarks.measuring.processes import ONE_THREAD

# Before NumPy, Numba or JAX is imported.
if __name__ == "__main__":
    os.environ.update(ONE_THREAD)

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt

import pytensor_fuse
from benchmarks.graphs.pymc_models import MANY as MANY_ROWS
from benchmarks.graphs.pymc_models import N_PREDICTORS
from benchmarks.measuring.turns import frozen_heap, in_turns, seconds
from benchmarks.native.calls import call_times, compiled_sides, finished
from benchmarks.native.figures import Figure, arguments, compared, report, say, sides_of
from benchmarks.native.models import FUNCTIONS, MODELS, Model, chosen

MANY = dict(zip(FUNCTIONS, (4, 5, 3.5, 4, 1.5, 4), strict=True))
OF_JAX = dict.fromkeys(FUNCTIONS, 2.0) | {"mixture": 1.5}
FEW = 1.5
MOST_OF_LIBM = 1.3
MOST_OF_BLAS = 1.3


def calls(model: Model, sides: list[str], rounds: int) -> list[Figure]:
    """Calls on few and many rows."""
    assert model.many is not None
    found = []
    for rows in (10, 1000, model.many):
        functions, values = compiled_sides(model, rows, sides)
        done = {side: finished(function, side) for side, function in functions.items()}
        is_many = rows == model.many
        found.append(
            Figure(
                f"f(*args), {rows:,} rows",
                model.name,
                "us",
                call_times(done, values, rounds),
                MANY[model.name] if is_many else FEW,
                OF_JAX[model.name] if is_many else None,
            )
        )
        say(" | ".join(found[-1].cells()))
    return found


def compile_time(model: Model, rounds: int) -> list[str]:
    """How long compiling takes, with our functions and with the C library's."""
    inputs, outputs, _ = model.graph()

    def one(math: str) -> float:
        with pytensor_fuse.enabled(native_math=math), pytensor_fuse.enabled(False, "cache"):
            return seconds(pytensor.function, inputs, outputs, clock=time.process_time)

    times = in_turns({math: partial(one, math) for math in ("vector", "libm")}, rounds, warmup=1)
    return compared("compile", model.name, times, "ms", MOST_OF_LIBM)


def beside(
    what: str, ours: Callable[..., Any], theirs: Callable[..., Any], values: list[Any], rounds: int
) -> list[str]:
    """How long a call takes, and what it consists of by other libraries."""
    times = call_times({"ours": ours, "stock": theirs}, values, rounds)
    named = {"ours": times["ours"], "OpenBLAS": times["stock"]}
    return compared(what, f"{MANY_ROWS:,} rows", named, "us", MOST_OF_BLAS)


def products(rounds: int) -> list[str]:
    """How long `X @ beta` and `X.T @ g` take in one loop, and by OpenBLAS."""
    rng = np.random.default_rng(29)
    x = rng.normal(size=(MANY_ROWS, N_PREDICTORS))
    beta = pt.tensor("beta", dtype="float64", shape=(N_PREDICTORS,))
    ours = pytensor.function([beta], pt.dot(x.T, pt.dot(x, beta)), trust_input=True)
    value = rng.normal(size=N_PREDICTORS)
    transposed = np.ascontiguousarray(x.T)

    def blas(value: np.ndarray) -> Any:
        return transposed @ (x @ value)

    np.testing.assert_allclose(ours(value), blas(value), rtol=1e-10)
    return beside("both products", ours, blas, [value], rounds)


def regression(rounds: int) -> list[str]:
    """How long a logistic regression takes, and its two products by OpenBLAS and exponentials."""
    inputs, outputs, values = MODELS["logistic"].graph(MANY_ROWS)
    ours = pytensor.function(inputs, outputs, trust_input=True)
    x = np.random.default_rng(30).normal(size=(MANY_ROWS, N_PREDICTORS))
    transposed = np.ascontiguousarray(x.T)

    def parts(_: np.ndarray, beta: np.ndarray) -> Any:
        return transposed @ np.exp(x @ beta)

    return beside("logistic, beside its products and exponentials", ours, parts, values, rounds)


def main() -> None:
    parser = arguments(__doc__, rounds=15)
    parser.add_argument("--parts", default="calls,compile,products")
    options = parser.parse_args()
    sides, parts = sides_of(options.sides), options.parts.split(",")
    models = chosen(options.only, FUNCTIONS)
    found: list[Figure] = []
    if "calls" in parts:
        for model in models:
            found += calls(model, sides, options.rounds)
    rows = []
    with frozen_heap():
        if "compile" in parts:
            rows += [compile_time(model, min(options.rounds, 7)) for model in models]
        if "products" in parts:
            rows += [products(options.rounds), regression(options.rounds)]
    report(found, rows)


if __name__ == "__main__":
    main()
