"""How long a modeller waits for a first value, with empty compile directories.

    python -m benchmarks.native.cold                                # everything: an hour
    python -m benchmarks.native.cold --only radon --rounds 1        # one model: two minutes
    python -m benchmarks.native.cold --only radon --steps first --rounds 1       # ten seconds
    python -m benchmarks.native.cold --only matrices --steps first  # those with linear algebra
    python -m benchmarks.native.cold --only series --steps first    # those that are Scans

Each measurement is a process of its own. The sides take turns: PyTensor without the package; with
it; PyTensor's JAX mode. Times are those of the processor, of child processes as well. Steps:

first      pytensor.function and the first call, after PyMC is imported and the graph built
script     from `import pymc` to the first value
edited     radon with another prior or likelihood, in directories where radon has been compiled
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
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.measuring.processes import AS_USERS, Results, run_in_turns, samples
from benchmarks.measuring.results import assert_same_reported
from benchmarks.measuring.turns import in_turns
from benchmarks.native.figures import Figure, arguments, report, say, sides_of
from benchmarks.native.models import EDITS, FIVE, MATRICES, Model, chosen

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
NUTPIE = {
    "radon": 6.0,
    "mixture": 12.0,
    "scalars": 6.0,
    "ordered-logistic": 15.0,
    "lkj": 15.0,
    "gaussian-process": 15.0,
}
NUTPIE_JAX = 1.2
PREDICTIVE = {"radon": 2.0, "mixture": 2.0}
N_DRAWS = 1000
SAMPLE = {"radon": 3.0, "mixture": 4.0}

Measure = Callable[[Model, Sequence[str], int], list[Figure]]


def cold(
    sides: Sequence[str],
    rounds: int,
    function: str,
    *given: str,
    directory: Path | None = None,
) -> Results:
    """What a function of ``native.child`` reports; with empty directories if there is none."""
    name = f"benchmarks.native.child:{function}"
    options: dict[str, Any] = {"directory": directory, "variables": AS_USERS}
    results = run_in_turns(name, *given, sides=sides, rounds=rounds, **options)
    if any("results" in result for of_side in results.values() for result in of_side):
        assert_same_reported(results)
    return results


def without_jax(sides: Sequence[str]) -> list[str]:
    return [side for side in sides if side != "jax"]


def first(model: Model, sides: Sequence[str], rounds: int) -> list[Figure]:
    """``pytensor.function`` and the first call."""
    name = model.name
    results = cold(sides, rounds, "first", name)
    both, call = samples(results, "function", "call"), samples(results, "call")
    asked, of_jax = FIRST_CALL.get(name), FIRST_CALL_JAX.get(name)
    return [
        Figure("first call", name, "s", call, asked, of_jax),
        Figure("function and first call", name, "s", both, FUNCTION_AND_CALL.get(name)),
    ]


def script(model: Model, sides: Sequence[str], rounds: int) -> list[Figure]:
    """From ``import pymc`` to the first value."""
    times = samples(cold(sides, rounds, "script", model.name), "script")
    asked = SCRIPT.get(model.name)
    return [Figure("import pymc to first value", model.name, "s", times, asked)]


def nutpie(model: Model, sides: Sequence[str], rounds: int) -> list[Figure]:
    """``nutpie.compile_pymc_model``, and a few draws, which must work."""
    results = cold(without_jax(sides), rounds, "nutpie", model.name, "50", "100")
    asked = NUTPIE.get(model.name)
    what = "nutpie.compile_pymc_model"
    return [Figure(what, model.name, "s", samples(results, "compile"), asked)]


def draws(model: Model, sides: Sequence[str], rounds: int) -> list[Figure]:
    """``nutpie.compile_pymc_model`` and draws, in nutpie's JAX back-end as well."""
    results = cold(sides, rounds, "nutpie", model.name, str(N_DRAWS), "300")
    times = samples(results, "compile", "draw")
    what = f"nutpie.compile_pymc_model and {N_DRAWS:,} draws"
    asked = NUTPIE_JAX if model.name in NUTPIE else None
    return [Figure(what, model.name, "s", times, asked_of_jax=asked)]


def sample(model: Model, sides: Sequence[str], rounds: int) -> list[Figure]:
    """The first ``pm.sample(300, tune=300)``."""
    times = samples(cold(without_jax(sides), rounds, "sample", model.name), "sample")
    what = "first pm.sample(300, tune=300)"
    return [Figure(what, model.name, "s", times, SAMPLE.get(model.name))]


def predictive(what: str, model: Model, sides: Sequence[str], rounds: int) -> list[Figure]:
    """The first ``pm.sample_prior_predictive``, or the same of the posterior."""
    times = samples(cold(without_jax(sides), rounds, what, model.name), what)
    name = f"first pm.sample_{what}_predictive"
    return [Figure(name, model.name, "s", times, PREDICTIVE.get(model.name))]


def edited(before: str, after: str, sides: Sequence[str], rounds: int) -> Results:
    """``pytensor.function`` and the first call of one model where another has been compiled.

    The directory is put back for each round: the path, which keys may contain, stays.
    """
    with tempfile.TemporaryDirectory(prefix="native-warm-") as name:
        work, kept = Path(name) / "work", Path(name) / "kept"
        # Twice: what only a second process does or keeps is done as well.
        cold(sides, 2, "first", before, directory=work)
        shutil.copytree(work, kept)

        def run(side: str) -> dict[str, Any]:
            shutil.rmtree(work)
            shutil.copytree(kept, work)
            [result] = cold([side], 1, "first", after, directory=work)[side]
            return result

        results: Results = in_turns({side: partial(run, side) for side in sides}, rounds)
    assert_same_reported(results)
    return results


def edits(model: Model, sides: Sequence[str], rounds: int) -> list[Figure]:
    """Radon with another prior, and with another likelihood."""
    figures = []
    for edit, after in EDITS.items():
        results = edited(model.name, after, without_jax(sides), rounds)
        times = samples(results, "function", "call")
        what = f"edited ({edit}), function and first call"
        figures.append(Figure(what, model.name, "s", times, EDITED[edit]))
    return figures


# Each step, and the models it is for if none is named.
STEPS: dict[str, tuple[Measure, Sequence[str]]] = {
    "first": (first, FIVE),
    "script": (script, [*SCRIPT]),
    "edited": (edits, ["radon"]),
    "nutpie": (nutpie, [*NUTPIE]),
    "draws": (draws, [*NUTPIE]),
    "sample": (sample, [*SAMPLE]),
    "prior": (partial(predictive, "prior"), [*PREDICTIVE]),
    "posterior": (partial(predictive, "posterior"), [*PREDICTIVE]),
}


def main() -> None:
    parser = arguments(__doc__, rounds=3)
    parser.add_argument("--steps", default=",".join(STEPS))
    options = parser.parse_args()
    sides = sides_of(options.sides)
    figures: list[Figure] = []
    for step in options.steps.split(","):
        if step not in STEPS:
            raise SystemExit(f"no step is called {step!r}; there are {', '.join(STEPS)}")
        if step in ("nutpie", "draws") and not find_spec("nutpie"):
            say("nutpie is not installed: its step is left out (pip install nutpie)")
            continue
        measure, names = STEPS[step]
        for model in chosen(options.only, names):
            if step == "edited" and model.name != "radon":
                continue
            say(f"{step} {model.name}")
            figures += (found := measure(model, sides, options.rounds))
            say("\n".join(" | ".join(figure.cells()) for figure in found))
    report(figures)


if __name__ == "__main__":
    main()
