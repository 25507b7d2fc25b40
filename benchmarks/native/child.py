"""What is measured in a process of its own, each function in a new one.

    python -m benchmarks.measuring.processes benchmarks.native.child:first radon ours

Nothing but the standard library is imported before the clock of a function starts, unless the
function says so.
"""

from __future__ import annotations

import gc
import sys
from statistics import median
from typing import Any

from benchmarks.measuring.processes import assert_honored, lists, processor_seconds


class Stopwatch:
    """Seconds of the processor, of children as well, since the last ``lap``."""

    def __init__(self, *, collect: bool = True) -> None:
        if collect:
            gc.collect()
        self._start = processor_seconds()

    def lap(self, name: str) -> dict[str, float]:
        now = processor_seconds()
        elapsed, self._start = now - self._start, now
        return {name: elapsed}


def _start(side: str) -> None:
    """Import PyMC, and the package where it is ours."""
    import pymc  # noqa: F401 - the import is what is wanted

    if side == "ours":
        assert_honored(ours=True)


def _reported(times: dict[str, float], side: str, **found: Any) -> dict[str, Any]:
    """What a process says; stock has loaded nothing of the package."""
    assert side == "ours" or "pytensor_fuse" not in sys.modules
    return {**times, **found}


def _compile(inputs: list[Any], outputs: list[Any], side: str, mode: str | None = None) -> Any:
    import pytensor

    return pytensor.function(inputs, outputs, mode="JAX" if side == "jax" else mode)


def _model(name: str, side: str) -> Any:
    _start(side)
    from benchmarks.native.models import MODELS

    return MODELS[name]


def first(name: str, side: str) -> dict[str, Any]:
    """``pytensor.function`` and the first call, after PyMC is imported and the model built."""
    inputs, outputs, values = _model(name, side).graph()
    watch = Stopwatch()
    function = _compile(inputs, outputs, side)
    times = watch.lap("function")
    results = function(*values)
    times |= watch.lap("call")
    return _reported(times, side, results=lists(results))


def wait(name: str, size: str, mode: str, side: str) -> dict[str, Any]:
    """What a person waits for: a first value, each call after it, and the same graph once more.

    The graph is a named one, with arrays of that size, built before the clock starts.
    """
    if side == "ours":
        assert_honored(ours=True)
    from benchmarks.graphs.named import reference
    from benchmarks.measuring.turns import call_times

    graph = reference(name)
    values = graph.values(int(size))
    # Equal graphs, each built anew.
    graphs = [graph.build() for _ in range(2)]
    watch = Stopwatch()
    function = _compile(*graphs[0], side, mode or None)
    results = function(*values)
    times = watch.lap("first")
    [calls] = call_times({"": function}, values, 15, batch=0.01).values()
    watch = Stopwatch()
    results_again = _compile(*graphs[1], side, mode or None)(*values)
    times |= watch.lap("again")
    times["call"] = median(calls)
    return _reported(times, side, results=[*lists(results), *lists(results_again)])


def script(name: str, side: str) -> dict[str, Any]:
    """From ``import pymc`` to the first value and gradient of a model."""
    watch = Stopwatch(collect=False)
    inputs, outputs, values = _model(name, side).graph()
    results = _compile(inputs, outputs, side)(*values)
    return _reported(watch.lap("script"), side, results=lists(results))


def nutpie(name: str, n_draws: str, tune: str, side: str) -> dict[str, Any]:
    """``nutpie.compile_pymc_model``, after the imports; then draws of one chain."""
    import nutpie

    model = _model(name, side).pymc()
    watch = Stopwatch()
    compiled = nutpie.compile_pymc_model(model, backend="jax" if side == "jax" else "numba")
    times = watch.lap("compile")
    trace = nutpie.sample(
        compiled, draws=int(n_draws), tune=int(tune), chains=1, seed=1, progress_bar=False
    )
    times |= watch.lap("draw")
    _check_draws(trace, int(n_draws))
    return _reported(times, side)


def sample(name: str, side: str) -> dict[str, Any]:
    """``pm.sample(300, tune=300)`` of one chain, the first of the process."""
    model = _model(name, side).pymc()
    import pymc as pm

    watch = Stopwatch()
    trace = pm.sample(
        300,
        tune=300,
        chains=1,
        cores=1,
        random_seed=1,
        progressbar=False,
        compute_convergence_checks=False,
        nuts_sampler="pymc",
        model=model,
    )
    times = watch.lap("sample")
    _check_draws(trace, 300)
    return _reported(times, side)


def prior(name: str, side: str) -> dict[str, Any]:
    """``pm.sample_prior_predictive``, the first of the process."""
    model = _model(name, side).pymc()
    import pymc as pm

    watch = Stopwatch()
    trace = pm.sample_prior_predictive(draws=500, random_seed=1, model=model)
    times = watch.lap("prior")
    return _reported(times, side, results=_predicted(trace, "prior_predictive", (1, 500)))


def posterior(name: str, side: str) -> dict[str, Any]:
    """``pm.sample_posterior_predictive``, the first of the process, of 1,000 made-up draws."""
    model = _model(name, side).pymc()
    import numpy as np
    import pymc as pm
    import xarray as xr

    rng = np.random.default_rng(1)
    drawn = {}
    for one in model.free_RVs:
        values = rng.uniform(0.5, 1.5, size=(2, 500, *one.type.shape))
        if one.type.ndim:
            # Weights are of a sum of one.
            values /= values.sum(axis=-1, keepdims=True)
        axes = [f"{one.name}_{axis}" for axis in range(one.type.ndim)]
        drawn[one.name] = (("chain", "draw", *axes), values)
    watch = Stopwatch()
    trace = pm.sample_posterior_predictive(
        xr.Dataset(drawn), random_seed=1, progressbar=False, model=model
    )
    times = watch.lap("posterior")
    return _reported(times, side, results=_predicted(trace, "posterior_predictive", (2, 500)))


def _predicted(trace: Any, group: str, shape: tuple[int, int]) -> list[Any]:
    import numpy as np

    found = [np.asarray(values) for values in trace[group].values()]
    assert all(one.shape[:2] == shape for one in found)
    # Chosen elements tell whether both sides have drawn the same.
    return lists(one[:, ::50] for one in found)


def _check_draws(trace: Any, draws: int) -> None:
    import numpy as np

    for name, values in trace["posterior"].items():
        assert values.shape[1] == draws, f"{name}: {values.shape}"
        assert np.isfinite(np.asarray(values)).all(), name


def memory(name: str, side: str) -> dict[str, Any]:
    """Bytes that the process has more after its first compile and call.

    Those of the modules of Numba or JAX are not counted.
    """
    _start(side)
    from benchmarks.graphs.named import reference
    from benchmarks.measuring.memory import resident_bytes
    from benchmarks.native.models import MODELS

    if name in MODELS:
        inputs, outputs, values = MODELS[name].graph()
    else:
        graph = reference(name)
        inputs, outputs = graph.build()
        values = graph.values(100)
    # What a back-end imports when it first compiles.
    if side == "jax":
        import pytensor.link.jax.dispatch
    else:
        import pytensor.link.numba.dispatch  # noqa: F401 - the import is what is wanted
    gc.collect()
    before = resident_bytes()
    function = _compile(inputs, outputs, side)
    results = function(*values)
    gc.collect()
    return _reported({"added": resident_bytes() - before}, side, results=lists(results))
