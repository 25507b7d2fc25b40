"""How long a modeller waits for a first value, with empty compile directories; issues 28 to 31.

    python benchmarks/native_cold.py                                # everything: an hour
    python benchmarks/native_cold.py --only radon --rounds 1        # one model: two minutes
    python benchmarks/native_cold.py --only radon --steps first --rounds 1       # ten seconds
    python benchmarks/native_cold.py --only matrices --steps first  # those with linear algebra
    python benchmarks/native_cold.py --only series --steps first    # those that are Scans
    python benchmarks/native_cold.py --wall                         # the clock's times as well

Each measurement is a process of its own. The sides take turns: PyTensor without the package; with
it; PyTensor's JAX mode. Times are those of the processor, of child processes as well. Steps:

first      pytensor.function and the first call, after PyMC is imported and the graph built
imported   the same, with the modules of Numba or JAX imported before the clock starts
script     from `import pymc` to the first value
edited     radon with another prior or likelihood, in directories where radon has been compiled
again      radon itself in such directories
nutpie     nutpie.compile_pymc_model
draws      the same and 1,000 draws by nutpie, after 300 of warm-up
sample     pm.sample(300, tune=300) by PyMC's own sampler
prior      pm.sample_prior_predictive, 500 draws
posterior  pm.sample_posterior_predictive, of 1,000 draws
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import native_child
from native_figures import Figure, arguments, in_turns, report, samples, say, sides_of
from native_models import EDITS, FIVE, MATRICES, Model, chosen

Results = dict[str, list[dict[str, Any]]]

FIRST_CALL = dict(zip(FIVE, (50, 50, 60, 120, 60), strict=True))
WAITS = ("stochastic-volatility", "kalman-filter", "lotka-volterra")
FIRST_CALL_JAX = {**dict.fromkeys(FIVE, 4.0), **dict.fromkeys((*MATRICES, *WAITS), 1.5)}
FUNCTION_AND_CALL = dict(
    zip(
        (*FIVE, *MATRICES, *WAITS),
        (10, 10, 13, 25, 10, 20, 25, 25, 10, 6, 12, 40, 10),
        strict=True,
    )
)
SCRIPT = {"radon": 3.5, "mixture": 8.0}
EDITED = {"prior": 4.0, "likelihood": 7.0}
NUTPIE = dict(
    zip(
        ("radon", "mixture", "scalars", "ordered-logistic", "lkj", "gaussian-process"),
        (6.0, 12.0, 6.0, 15.0, 15.0, 15.0),
        strict=True,
    )
)
NUTPIE_JAX = 1.2
PREDICTIVE = {"radon": 2.0, "mixture": 2.0}
N_DRAWS = 1000
SAMPLE = {"radon": 3.0, "mixture": 4.0}

# As of the compiled functions everywhere; what JAX sums, it sums in another order.
ROUNDING = 1e-9
ROUNDING_OF_JAX = 1e-8


def cold(command: str, *given: str, side: str) -> dict[str, Any]:
    """Run a command in a new process with empty directories."""
    with tempfile.TemporaryDirectory(prefix="native-cold-") as directory:
        return native_child.run(command, *given, side=side, directory=Path(directory))


def check(results: Results) -> None:
    """Fail unless all sides have the same values."""
    expected, *_ = results.get("stock") or next(iter(results.values()))
    for side, of_side in results.items():
        for result in of_side:
            for k, (got, want) in enumerate(
                zip(result["results"], expected["results"], strict=True)
            ):
                a, b = np.asarray(got), np.asarray(want)
                assert a.shape == b.shape, f"{side}, output {k}: {a.shape}, not {b.shape}"
                scale = max(1.0, float(np.abs(b).max(initial=0.0)))
                allowed = ROUNDING_OF_JAX if side == "jax" else ROUNDING
                difference = float(np.abs(a - b).max(initial=0.0)) / scale
                assert difference <= allowed, f"{side}, output {k}: differs by {difference:.1e}"


def first(
    model: Model, sides: Sequence[str], rounds: int, what: str = "new"
) -> tuple[Results, list[Figure]]:
    """``pytensor.function`` and the first call."""
    results = in_turns(sides, lambda side: cold("first", model.name, what, side=side), rounds)
    check(results)
    after = "" if what == "new" else ", back-end imported before"
    name = model.name
    return results, [
        Figure(f"pytensor.function{after}", name, "s", samples(results, "function")),
        Figure(
            f"first call{after}",
            name,
            "s",
            samples(results, "call"),
            FIRST_CALL.get(name),
            FIRST_CALL_JAX.get(name),
        ),
        Figure(
            f"function and first call{after}",
            name,
            "s",
            samples(results, "function", "call"),
            FUNCTION_AND_CALL.get(name),
        ),
    ]


def script(model: Model, sides: Sequence[str], rounds: int) -> tuple[Results, list[Figure]]:
    """From ``import pymc`` to the first value."""
    results = in_turns(sides, lambda side: cold("script", model.name, side=side), rounds)
    check(results)
    times = samples(results, "script")
    asked = SCRIPT.get(model.name)
    return results, [Figure("import pymc to first value", model.name, "s", times, asked)]


def nutpie(model: Model, sides: Sequence[str], rounds: int) -> tuple[Results, list[Figure]]:
    """``nutpie.compile_pymc_model``."""
    sides = [side for side in sides if side != "jax"]
    results = in_turns(sides, lambda side: cold("nutpie", model.name, side=side), rounds)
    times = samples(results, "compile")
    asked = NUTPIE.get(model.name)
    return results, [Figure("nutpie.compile_pymc_model", model.name, "s", times, asked)]


def draws(model: Model, sides: Sequence[str], rounds: int) -> tuple[Results, list[Figure]]:
    """``nutpie.compile_pymc_model`` and draws, in nutpie's JAX back-end as well."""
    results = in_turns(
        sides, lambda side: cold("draws", model.name, str(N_DRAWS), side=side), rounds
    )
    times = samples(results, "compile", "draw")
    what = f"nutpie.compile_pymc_model and {N_DRAWS:,} draws"
    asked = NUTPIE_JAX if model.name in NUTPIE else None
    return results, [Figure(what, model.name, "s", times, asked_of_jax=asked)]


def sample(
    model: Model,
    sides: Sequence[str],
    rounds: int,
    sampler: str = "pymc",
    chains: int = 1,
) -> tuple[Results, list[Figure]]:
    """The first ``pm.sample(300, tune=300)``."""
    sides = [side for side in sides if side != "jax"]
    results = in_turns(
        sides, lambda side: cold("sample", model.name, sampler, str(chains), side=side), rounds
    )
    times = samples(results, "sample")
    what = "first pm.sample(300, tune=300)"
    if sampler != "pymc":
        what += f" by {sampler}"
    return results, [Figure(what, model.name, "s", times, SAMPLE.get(model.name))]


def predictive(
    model: Model, sides: Sequence[str], rounds: int, what: str
) -> tuple[Results, list[Figure]]:
    """The first ``pm.sample_prior_predictive``, or the same of the posterior."""
    sides = [side for side in sides if side != "jax"]
    results = in_turns(sides, lambda side: cold(what, model.name, side=side), rounds)
    check(results)
    asked = PREDICTIVE.get(model.name)
    name = f"first pm.sample_{what}_predictive"
    return results, [Figure(name, model.name, "s", samples(results, what), asked)]


def edited(before: str, after: str, sides: Sequence[str], rounds: int) -> Results:
    """``pytensor.function`` and the first call of one model where another has been compiled.

    The directory is put back for each round: the path, which keys may contain, stays.
    """
    sides = [side for side in sides if side != "jax"]
    with tempfile.TemporaryDirectory(prefix="native-warm-") as name:
        work, kept = Path(name) / "work", Path(name) / "kept"
        for side in sides:
            # Twice: what only a second process does or keeps is done as well.
            for _ in range(2):
                native_child.run("first", before, "new", side=side, directory=work / side)
        shutil.copytree(work, kept)

        def run(side: str) -> dict[str, Any]:
            shutil.rmtree(work)
            shutil.copytree(kept, work)
            return native_child.run("first", after, "new", side=side, directory=work / side)

        results = in_turns(sides, run, rounds)
    check(results)
    return results


def edits(model: Model, sides: Sequence[str], rounds: int) -> tuple[Results, list[Figure]]:
    """Radon with another prior, and with another likelihood."""
    figures = []
    results: Results = {}
    for edit, after in EDITS.items():
        found = edited(model.name, after, sides, rounds)
        for side, of_side in found.items():
            results.setdefault(side, []).extend(of_side)
        times = samples(found, "function", "call")
        what = f"edited ({edit}), function and first call"
        figures.append(Figure(what, model.name, "s", times, EDITED[edit]))
    return results, figures


def again(model: Model, sides: Sequence[str], rounds: int) -> tuple[Results, list[Figure]]:
    """The same model in a new process."""
    results = edited(model.name, model.name, sides, rounds)
    times = samples(results, "function", "call")
    return results, [
        Figure("again in a new process, function and first call", model.name, "s", times)
    ]


def by_the_clock(figures: list[Figure], results: Results) -> list[Figure]:
    """The figures, and for each of one entry that by the clock."""
    more = []
    for figure in figures:
        more.append(figure)
        keys = {
            "pytensor.function": ["function"],
            "first call": ["call"],
            "function and first call": ["function", "call"],
            "import pymc to first value": ["script"],
            "nutpie.compile_pymc_model": ["compile"],
            f"nutpie.compile_pymc_model and {N_DRAWS:,} draws": ["compile", "draw"],
            "first pm.sample(300, tune=300)": ["sample"],
            "first pm.sample_prior_predictive": ["prior"],
            "first pm.sample_posterior_predictive": ["posterior"],
        }.get(figure.what)
        if keys:
            walls = samples(results, *(f"{key} wall" for key in keys))
            more.append(Figure(f"{figure.what}, by the clock", figure.model, "s", walls))
    return more


def main() -> None:
    parser = arguments(__doc__, rounds=3)
    parser.add_argument(
        "--steps",
        default="first,script,edited,again,nutpie,draws,sample,prior,posterior",
        help="or imported",
    )
    parser.add_argument("--sampler", default="pymc", help="of pm.sample; pymc or nutpie")
    parser.add_argument("--chains", type=int, default=1, help="of pm.sample")
    parser.add_argument("--wall", action="store_true", help="the clock's times as well")
    options = parser.parse_args()
    sides = sides_of(options.sides)
    measured: dict[str, Callable[..., tuple[Results, list[Figure]]]] = {
        "first": first,
        "imported": lambda *given: first(*given, what="imported"),
        "script": script,
        "edited": edits,
        "again": again,
        "nutpie": nutpie,
        "draws": draws,
        "sample": lambda *given: sample(*given, options.sampler, options.chains),
        "prior": lambda *given: predictive(*given, "prior"),
        "posterior": lambda *given: predictive(*given, "posterior"),
    }
    # Unless a model is named, the steps are for those that the issue asks of.
    asked = {
        "script": SCRIPT,
        "nutpie": NUTPIE,
        "draws": NUTPIE,
        "sample": SAMPLE,
        "prior": PREDICTIVE,
        "posterior": PREDICTIVE,
        "again": ["radon"],
    }
    figures: list[Figure] = []
    raw: list[dict[str, Any]] = []
    for step in options.steps.split(","):
        if step not in measured:
            raise SystemExit(f"no step is called {step!r}; there are {', '.join(measured)}")
        if step in ("nutpie", "draws") and not find_spec("nutpie"):
            say("nutpie is not installed: its step is left out (pip install nutpie)")
            continue
        for model in chosen(options.only):
            if step in asked and not options.only and model.name not in asked[step]:
                continue
            if step == "edited" and model.name != "radon":
                continue
            say(f"{step} {model.name}")
            results, found = measured[step](model, sides, options.rounds)
            figures += by_the_clock(found, results) if options.wall else found
            raw.append({"step": step, "model": model.name, "results": _without_values(results)})
            say("\n".join(" | ".join(figure.cells()) for figure in found))
    report(figures, options, raw=raw)


def _without_values(results: Results) -> Results:
    return {
        side: [{k: v for k, v in result.items() if k != "results"} for result in of_side]
        for side, of_side in results.items()
    }


if __name__ == "__main__":
    main()
