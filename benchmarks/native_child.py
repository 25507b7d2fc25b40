"""What issue 28 measures in a process of its own; each command prints one JSON object.

    PYTENSOR_FUSE=0 python benchmarks/native_child.py first radon stock

``run`` starts one with the directories and the environment of its side. Nothing but the standard
library is imported before the clock of a command starts, unless the command says so.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parent


def run(command: str, *arguments: str, side: str, directory: Path) -> dict[str, Any]:
    """Run a command in a new process whose compile directories are below ``directory``.

    The package keeps its own files below PyTensor's compile directory, so that all are empty where
    ``directory`` is. ``PYTENSOR_FUSE_NATIVE`` and its like reach the process as they are.

    Raises
    ------
    RuntimeError
        If the process fails; with what it wrote.
    """
    from native_figures import ONE_THREAD

    # Other benchmarks turn the cache off; here it is what a user has.
    kept = {k: v for k, v in os.environ.items() if k != "PYTENSOR_FUSE_CACHE"}
    given = [flags] if (flags := os.environ.get("PYTENSOR_FLAGS")) else []
    environment = {
        **kept,
        **ONE_THREAD,
        "PYTENSOR_FLAGS": ",".join([*given, f"base_compiledir={directory / 'pytensor'}"]),
        "NUMBA_CACHE_DIR": str(directory / "numba"),
        "PYTENSOR_FUSE": "1" if side == "ours" else "0",
    }
    line = [sys.executable, str(BENCHMARKS / "native_child.py"), command, *arguments, side]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(line)} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


class Stopwatch:
    """Seconds of the processor, of children as well, and of the clock, since the last ``lap``."""

    def __init__(self, *, collect: bool = True) -> None:
        if collect:
            gc.collect()
        self._cpu, self._wall = _cpu(), time.perf_counter()

    def lap(self, name: str) -> dict[str, float]:
        cpu, wall = _cpu(), time.perf_counter()
        result = {name: cpu - self._cpu, f"{name} wall": wall - self._wall}
        self._cpu, self._wall = cpu, wall
        return result


def _cpu() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _start(side: str) -> None:
    """Import PyMC, and the package where it is ours."""
    import pymc  # noqa: F401 - the import is what is wanted

    if side == "ours":
        import pytensor_fuse

        assert pytensor_fuse.status()["fusion"].is_on, "PYTENSOR_FUSE was not honored"


def _end(side: str) -> dict[str, Any]:
    """What the process has loaded; stock has nothing of the package."""
    assert side == "ours" or "pytensor_fuse" not in sys.modules
    return {"numba": "numba" in sys.modules}


def _compile(inputs: list[Any], outputs: list[Any], side: str) -> Any:
    import pytensor

    return pytensor.function(inputs, outputs, mode="JAX" if side == "jax" else None)


def _lists(results: list[Any]) -> list[Any]:
    import numpy as np

    return [np.asarray(result).tolist() for result in results]


def _import_back_end(side: str) -> None:
    """What a back-end imports when it first compiles."""
    if side == "jax":
        import pytensor.link.jax.dispatch
    else:
        import pytensor.link.numba.dispatch  # noqa: F401 - the import is what is wanted


def first(name: str, what: str, side: str) -> dict[str, Any]:
    """``pytensor.function`` and the first call, after PyMC is imported and the model built.

    With ``what`` "imported", the modules of Numba or JAX are imported before the clock starts.
    """
    _start(side)
    from native_models import MODELS

    inputs, outputs, values = MODELS[name].graph()
    if what == "imported":
        _import_back_end(side)
    watch = Stopwatch()
    function = _compile(inputs, outputs, side)
    times = watch.lap("function")
    results = function(*values)
    times |= watch.lap("call")
    return {**times, "results": _lists(results), **_end(side)}


def wait(name: str, size: str, mode: str, side: str) -> dict[str, Any]:
    """What a person waits for: a first value, each call after it, and the same graph once more.

    The graph is one of ``graphs.py``, with arrays of that size, built before the clock starts.
    """
    if side == "ours":
        import pytensor_fuse

        assert pytensor_fuse.status()["fusion"].is_on, "PYTENSOR_FUSE was not honored"
    import pytensor

    from graphs import reference

    graph = reference(name)
    values = graph.values(int(size))

    def first_value(graph: Any) -> tuple[Any, list[Any]]:
        function = pytensor.function(*graph, mode="JAX" if side == "jax" else mode or None)
        return function, function(*values)

    # Equal graphs, each built anew.
    graphs = [graph.build() for _ in range(2)]
    watch = Stopwatch()
    function, results = first_value(graphs[0])
    times = watch.lap("first")
    call = _call_seconds(function, values)
    watch = Stopwatch()
    _, results_again = first_value(graphs[1])
    times |= watch.lap("again")
    return {
        **times,
        "call": call,
        "results": _lists(results),
        "results again": _lists(results_again),
        **_end(side),
    }


def _call_seconds(function: Any, values: list[Any]) -> float:
    """The processor's seconds of one call: the median of batches of some milliseconds."""
    batches = []
    n_calls, least = 1, 0.01
    while len(batches) < 15:
        start = time.process_time()
        for _ in range(n_calls):
            function(*values)
        elapsed = time.process_time() - start
        if elapsed < least and not batches:
            n_calls *= 2
        else:
            batches.append(elapsed / n_calls)
    return statistics.median(batches)


def script(name: str, side: str) -> dict[str, Any]:
    """From ``import pymc`` to the first value and gradient of a model."""
    watch = Stopwatch(collect=False)
    _start(side)
    from native_models import MODELS

    inputs, outputs, values = MODELS[name].graph()
    results = _compile(inputs, outputs, side)(*values)
    return {**watch.lap("script"), "results": _lists(results), **_end(side)}


def nutpie(name: str, side: str) -> dict[str, Any]:
    """``nutpie.compile_pymc_model``, after the imports; then a few draws, which must work."""
    return _nutpie(name, 50, 100, side)


def draws(name: str, n_draws: str, side: str) -> dict[str, Any]:
    """The same with draws that are worth it, after 300 of warm-up; one chain."""
    return _nutpie(name, int(n_draws), 300, side)


def _nutpie(name: str, n_draws: int, tune: int, side: str) -> dict[str, Any]:
    import nutpie

    _start(side)
    from native_models import MODELS

    model = MODELS[name].pymc()
    watch = Stopwatch()
    compiled = nutpie.compile_pymc_model(model, backend="jax" if side == "jax" else "numba")
    times = watch.lap("compile")
    trace = nutpie.sample(compiled, draws=n_draws, tune=tune, chains=1, seed=1, progress_bar=False)
    times |= watch.lap("draw")
    return {**times, **_check_draws(trace, n_draws), **_end(side)}


def sample(name: str, sampler: str, chains: str, side: str) -> dict[str, Any]:
    """``pm.sample(300, tune=300)``, the first of the process."""
    _start(side)
    import pymc as pm

    from native_models import MODELS

    model = MODELS[name].pymc()
    watch = Stopwatch()
    trace = pm.sample(
        300,
        tune=300,
        chains=int(chains),
        cores=1,
        random_seed=1,
        progressbar=False,
        compute_convergence_checks=False,
        nuts_sampler=sampler,
        model=model,
    )
    times = watch.lap("sample")
    # By the clock; the rest is building and compiling.
    times["drawing wall"] = float(trace["posterior"].attrs.get("sampling_time", float("nan")))
    return {**times, **_check_draws(trace, 300), **_end(side)}


def prior(name: str, side: str) -> dict[str, Any]:
    """``pm.sample_prior_predictive``, the first of the process."""
    _start(side)
    import pymc as pm

    from native_models import MODELS

    model = MODELS[name].pymc()
    watch = Stopwatch()
    trace = pm.sample_prior_predictive(draws=500, random_seed=1, model=model)
    times = watch.lap("prior")
    return {**times, **_predicted(trace, "prior_predictive", (1, 500)), **_end(side)}


def posterior(name: str, side: str) -> dict[str, Any]:
    """``pm.sample_posterior_predictive``, the first of the process, of 1,000 made-up draws."""
    _start(side)
    import numpy as np
    import pymc as pm
    import xarray as xr

    from native_models import MODELS

    model = MODELS[name].pymc()
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
    return {**times, **_predicted(trace, "posterior_predictive", (2, 500)), **_end(side)}


def _predicted(trace: Any, group: str, shape: tuple[int, int]) -> dict[str, Any]:
    import numpy as np

    found = [np.asarray(values) for values in trace[group].values()]
    assert all(one.shape[:2] == shape for one in found)
    # Chosen elements tell whether both sides have drawn the same.
    return {"results": [one[:, ::50].tolist() for one in found]}


def _check_draws(trace: Any, draws: int) -> dict[str, Any]:
    import numpy as np

    found = {name: np.asarray(values) for name, values in trace["posterior"].items()}
    for name, values in found.items():
        assert values.shape[1] == draws, f"{name}: {values.shape}"
        assert np.isfinite(values).all(), name
    return {"draws": draws}


def loops(n: str, side: str) -> dict[str, Any]:
    """Compile ``n`` loops that do not fuse, and call; Numba's or JAX's modules come before."""
    _start(side)
    import native_models

    inputs, outputs, values = native_models.loops(int(n))
    _import_back_end(side)
    watch = Stopwatch()
    function = _compile(inputs, outputs, side)
    times = watch.lap("function")
    results = function(*values)
    times |= watch.lap("call")
    return {**times, "results": _lists(results), **_end(side)}


def memory(name: str, what: str, side: str) -> dict[str, Any]:
    """Bytes that the process has more after its first compile and call, and at most meanwhile.

    With ``what`` "imported", those of the modules of Numba or JAX are not counted.
    """
    _start(side)
    from child import _peak_bytes, _reset_peak, _resident_bytes
    from graphs import reference
    from native_models import MODELS

    if name in MODELS:
        inputs, outputs, values = MODELS[name].graph()
    else:
        graph = reference(name)
        inputs, outputs = graph.build()
        values = graph.values(100)
    if what == "imported":
        _import_back_end(side)
    gc.collect()
    _reset_peak()
    before = _resident_bytes()
    function = _compile(inputs, outputs, side)
    results = function(*values)
    gc.collect()
    return {
        "added": _resident_bytes() - before,
        "peak": _peak_bytes() - before,
        "results": _lists(results),
        **_end(side),
    }


COMMANDS = {
    "first": first,
    "wait": wait,
    "script": script,
    "nutpie": nutpie,
    "draws": draws,
    "sample": sample,
    "prior": prior,
    "posterior": posterior,
    "loops": loops,
    "memory": memory,
}

if __name__ == "__main__":
    print(json.dumps(COMMANDS[sys.argv[1]](*sys.argv[2:])))
