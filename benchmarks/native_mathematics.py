"""Models that are mostly mathematical functions, stock, ours and JAX in one process; issues 29, 30.

    python benchmarks/native_mathematics.py                          # ten minutes
    python benchmarks/native_mathematics.py --only weibull --rounds 7
    python benchmarks/native_mathematics.py --parts compile,products

Value and gradient on 10, 1,000 and many rows; what `native_math="vector"` adds to the time of a
compile with `native_math="libm"`; how long both products of a regression's data take in our loop,
and OpenBLAS; and a logistic regression beside its products by OpenBLAS and NumPy's exponentials.
"""

from __future__ import annotations

import os

from native_figures import ONE_THREAD

# Before NumPy, Numba or JAX is imported.
if __name__ == "__main__":
    os.environ.update(ONE_THREAD)

import time
from statistics import median
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt

import measure
import pytensor_fuse
from native_calls import call_times, compiled_sides, finished
from native_figures import Figure, arguments, report, say, sides_of
from native_models import FUNCTIONS, N_PREDICTORS, NativeModel, chosen, graph
from native_models import MANY as MANY_ROWS

MANY = dict(zip(FUNCTIONS, (4, 5, 3.5, 4, 1.5, 4), strict=True))
OF_JAX = dict.fromkeys(FUNCTIONS, 2.0) | {"mixture": 1.5}
FEW = 1.5
MOST_OF_LIBM = 1.3
MOST_OF_BLAS = 1.3


def calls(model: NativeModel, sides: list[str], rounds: int) -> list[Figure]:
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


def compile_time(model: NativeModel, rounds: int) -> str:
    """How long compiling takes, with our functions and with the C library's."""
    inputs, outputs = model.build()
    times: dict[str, list[float]] = {"vector": [], "libm": []}
    for _ in range(rounds + 1):
        for math, found in times.items():
            with pytensor_fuse.enabled(native_math=math), pytensor_fuse.enabled(False, "cache"):
                start = time.process_time()
                pytensor.function(inputs, outputs)
                found.append(time.process_time() - start)
    ratio = median(a / b for a, b in list(zip(*times.values(), strict=True))[1:])
    both = [f"{1e3 * median(found[1:]):.0f} ms" for found in times.values()]
    met = "yes" if ratio <= MOST_OF_LIBM else "NO"
    return f"| compile, vector / libm | {model.name} | {' | '.join(both)} | {ratio:.2f} | {met} |"


def products(rounds: int, rows: int = 100_000) -> str:
    """How long `X @ beta` and `X.T @ g` take in one loop, and by OpenBLAS."""
    rng = np.random.default_rng(29)
    x = rng.normal(size=(rows, N_PREDICTORS))
    beta = pt.tensor("beta", dtype="float64", shape=(N_PREDICTORS,))
    mean = pt.dot(x, beta)
    ours = pytensor.function([beta], pt.dot(x.T, mean), trust_input=True)
    value = rng.normal(size=N_PREDICTORS)
    transposed = np.ascontiguousarray(x.T)

    def blas(value: np.ndarray) -> Any:
        return transposed @ (x @ value)

    np.testing.assert_allclose(ours(value), blas(value), rtol=1e-10)
    times = call_times({"ours": ours, "stock": blas}, [value], rounds)
    ratio = median(a / b for a, b in zip(times["ours"], times["stock"], strict=True))
    both = [f"{1e6 * median(times[side]):.0f} us" for side in ("ours", "stock")]
    met = "yes" if ratio <= MOST_OF_BLAS else "NO"
    what = f"both products, ours / OpenBLAS | {rows:,} rows"
    return f"| {what} | {' | '.join(both)} | {ratio:.2f} | {met} |"


def regression(rounds: int) -> str:
    """How long a logistic regression takes, and its two products by OpenBLAS and exponentials."""
    inputs, outputs, values = graph("logistic", MANY_ROWS)
    ours = pytensor.function(inputs, outputs, trust_input=True)
    rng = np.random.default_rng(30)
    x = rng.normal(size=(MANY_ROWS, N_PREDICTORS))
    transposed = np.ascontiguousarray(x.T)

    def parts(_: np.ndarray, beta: np.ndarray) -> Any:
        return transposed @ np.exp(x @ beta)

    times = call_times({"ours": ours, "stock": parts}, values, rounds)
    ratio = median(a / b for a, b in zip(times["ours"], times["stock"], strict=True))
    both = [f"{1e6 * median(times[side]):.0f} us" for side in ("ours", "stock")]
    met = "yes" if ratio <= MOST_OF_BLAS else "NO"
    what = (
        f"logistic, ours / its products by OpenBLAS and NumPy's exponentials | {MANY_ROWS:,} rows"
    )
    return f"| {what} | {' | '.join(both)} | {ratio:.2f} | {met} |"


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
    lines = []
    with measure.frozen_heap():
        if "compile" in parts:
            lines += [compile_time(model, min(options.rounds, 7)) for model in models]
        if "products" in parts:
            lines.append(products(options.rounds))
            lines.append(regression(options.rounds))
    report(found, options)
    print("\n".join(["| what | | vector or ours | libm or BLAS | ratio | met |", *lines]))


if __name__ == "__main__":
    main()
