"""Whole compiles: the package, with and without accelerators, against stock PyTensor."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytensor
import pytest
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph

import measure
import pytensor_fuse
from conftest import Pair
from graphs import GP, MIXTURE, RADON, STUDENT_T, GraphIO, Reference, deep, large
from pytensor_fuse import freeze, status
from rows import Row
from support.switching import switched

COMPILE = "whole compile, Python linker"
ALONE = "whole compile, accelerators on against off"
EACH = "whole compile, with {} against all others"
NUMBA = "whole compile, Numba that has compiled it before"
BUILDING = "building a model and its gradient"
JAX = "whole compile, JAX / ours, by the clock"
# Of `tests/test_pymc_models.py`.
PYMC_MODELS = ("hierarchical_regression", "student_t_regression", "mixture")
MODE = Mode(linker="py", optimizer="fast_run")


def pymc_reference(name: str) -> Reference:
    """A model of the tests: its log-density and the gradient of that."""
    pm = pytest.importorskip("pymc")
    path = str(Path(__file__).parents[1] / "tests")
    if path not in sys.path:
        sys.path.append(path)
    from test_pymc_models import MODELS

    def build() -> GraphIO:
        with pm.Model() as model:
            MODELS[name](np.random.default_rng(7))
        return model.continuous_value_vars, [model.logp(), model.dlogp()]

    return Reference(f"PyMC {name}", build, lambda size: [])


def compiled(reference: Reference, **features: Any) -> Any:
    inputs, outputs = reference.build()
    with switched(**features):
        return pytensor.function(inputs, outputs, mode=MODE)


def seconds(reference: Reference, mode: Mode | str = MODE, **features: Any) -> float:
    """Processor time of one compile; the graph is built, and garbage collected, before."""
    inputs, outputs = reference.build()
    with switched(**features):
        gc.collect()
        start = time.process_time()
        function = pytensor.function(inputs, outputs, mode=mode)
        elapsed = time.process_time() - start
    del function
    return elapsed


def building_seconds(reference: Reference, **features: Any) -> float:
    """Processor time of building a graph with its gradient; nothing is compiled."""
    with switched(**features):
        gc.collect()
        start = time.process_time()
        graph = reference.build()
        elapsed = time.process_time() - start
    del graph
    return elapsed


@pytest.mark.parametrize(
    ("reference", "rounds"),
    [
        pytest.param(RADON, 11, id="radon"),
        pytest.param(deep(20), 21, id="deep-20"),
        pytest.param(GP, 11, id="gaussian-process"),
        pytest.param(STUDENT_T, 5, id="student-t-40"),
        pytest.param(MIXTURE, 11, id="mixture"),
        pytest.param(large(25), 5, id="large-25"),
        pytest.param(deep(400), 3, id="deep-400"),
        pytest.param(deep(1600), 1, id="deep-1600"),
        pytest.param(large(100), 3, id="large-100"),
        # Stock takes a quarter of a minute for it.
        pytest.param(large(200), 1, id="large-200"),
    ],
)
def test_whole_compiles(pair: Pair, reference: Reference, rounds: int) -> None:
    compare(pair, reference, rounds)


@pytest.mark.parametrize("name", PYMC_MODELS)
def test_whole_compiles_of_pymc_models(pair: Pair, name: str) -> None:
    compare(pair, pymc_reference(name), 5)


def compare(pair: Pair, reference: Reference, rounds: int) -> None:
    """Report how many times faster the package compiles a graph: with accelerators, and by them."""
    sides: list[dict[str, Any]] = [{"flag": False}, {"accelerators": False}, {}]
    stock, without, ours = (compiled(reference, **side) for side in sides)
    assert freeze(ours.maker.fgraph).digest == freeze(without.maker.fgraph).digest
    # Kernels of more operands than NumPy takes do not run with the Python linker.
    if reference is not STUDENT_T and not reference.name.startswith(("large", "PyMC")):
        values = reference.values(10)
        results = [[np.asarray(v) for v in function(*values)] for function in (ours, stock)]
        assert measure.largest_difference(*results) <= measure.ROUNDING

    def round_of_all() -> list[float]:
        return [seconds(reference, **side) for side in sides]

    round_of_all()
    with measure.frozen_heap():
        times = pair.alone(round_of_all, rounds=rounds)
    pair.report(Row(COMPILE, reference.name, median(s / o for s, _, o in times), "x"))
    pair.report(Row(ALONE, reference.name, median(w / o for _, w, o in times), "x"))


@pytest.mark.parametrize("reference", [RADON, GP, STUDENT_T, MIXTURE], ids=lambda one: one.name)
def test_numba(pair: Pair, reference: Reference) -> None:
    """Report how many times faster a compile is whose kernels Numba finds on disk."""
    values = reference.values(10)
    sides: list[dict[str, Any]] = [{"flag": False}, {"native": False}]
    for side in sides:
        with switched(**side):
            pytensor.function(*reference.build(), mode="NUMBA")(*values)

    def round_of_both() -> float:
        stock, ours = (seconds(reference, "NUMBA", **side) for side in sides)
        return stock / ours

    round_of_both()
    with measure.frozen_heap():
        ratios = pair.alone(round_of_both, rounds=7)
    pair.report(Row(NUMBA, reference.name, median(ratios), "x"))


@pytest.mark.parametrize("name", PYMC_MODELS)
def test_building(pair: Pair, name: str) -> None:
    """Report how many times faster a model of PyMC is made, with its log-density's gradient."""
    reference = pymc_reference(name)
    graphs = []
    for flag in (False, True):
        with pytensor_fuse.enabled(flag):
            graphs.append(FunctionGraph(*reference.build(), clone=False))
    stock, ours = map(freeze, graphs)
    assert stock.digest == ours.digest

    def round_of_both() -> float:
        return building_seconds(reference, flag=False) / building_seconds(reference)

    round_of_both()
    with measure.frozen_heap():
        ratios = pair.alone(round_of_both, rounds=11)
    pair.report(Row(BUILDING, reference.name, median(ratios), "x"))


def deep_of_jax(n: int, jnp: Any) -> Callable[..., Any]:
    """What `deep_small_kernels` computes."""

    def compute(x: Any) -> Any:
        for _ in range(n):
            x = jnp.sin(x.T) + jnp.cos(x)
        return x

    return compute


def large_of_jax(n: int, jnp: Any) -> Callable[..., Any]:
    """The sum of which `large_fuseable_graph` computes the gradients."""

    def compute(sd: Any, means: Any) -> Any:
        precision = sd**-2.0
        ones = jnp.ones(10)
        terms = (
            -0.5 * precision * (ones - means[i]) ** 2 + 0.5 * jnp.log(0.5 * precision / np.pi)
            for i in range(n)
        )
        return sum(jnp.sum(term) for term in terms)

    return compute


@pytest.mark.parametrize(
    ("make", "n", "rounds"),
    [(large, 25, 5), (deep, 400, 3), (large, 100, 3), (large, 200, 3)],
    ids=["large-25", "deep-400", "large-100", "large-200"],
)
def test_faster_than_jax(pair: Pair, make: Callable[[int], Reference], n: int, rounds: int) -> None:
    """Report how many times longer JAX takes to trace and compile the same."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    reference = make(n)
    values = reference.values(n)
    of_jax = deep_of_jax if make is deep else large_of_jax

    def theirs() -> Any:
        # Made anew, or it would be what was traced before.
        made = of_jax(n, jax.numpy)
        wanted = made if make is deep else jax.grad(made, argnums=(0, 1))
        return jax.jit(wanted).lower(*values).compile()

    # One matrix of `deep`, two gradients of `large`.
    numbers = [np.asarray(one) for one in jax.tree.leaves(theirs()(*values))]
    ours = pytensor.function(*reference.build(), mode="CVM")(*values)
    assert measure.largest_difference(ours, numbers) <= measure.ROUNDING

    def by_the_clock(compile_it: Callable[[], Any]) -> float:
        gc.collect()
        start = time.perf_counter()
        compile_it()
        return time.perf_counter() - start

    def round_of_both() -> float:
        graph = reference.build()
        return by_the_clock(theirs) / by_the_clock(lambda: pytensor.function(*graph, mode=MODE))

    round_of_both()
    with measure.frozen_heap():
        ratios = pair.alone(round_of_both, rounds=rounds)
    pair.report(Row(JAX, reference.name, median(ratios), "x", floor=1.0))


@pytest.mark.parametrize(
    ("reference", "rounds"),
    [
        pytest.param(RADON, 15, id="radon"),
        pytest.param(GP, 15, id="gaussian-process"),
        pytest.param(STUDENT_T, 5, id="student-t-40"),
        pytest.param(deep(400), 7, id="deep-400"),
        pytest.param(large(100), 3, id="large-100"),
    ],
)
def test_each_accelerator(pair: Pair, reference: Reference, rounds: int) -> None:
    """Report how many times longer a compile takes without one of them.

    The records in `pytensor_fuse._accelerators` have, of these figures, the largest for each.
    """
    names = [name for name, part in status()["accelerators"].parts.items() if part.is_on]
    others = {name: [other for other in names if other != name] for name in names}
    for name in names:
        seconds(reference, accelerators=others[name])

    def round_of_all() -> dict[str, float]:
        # Next to each other, since the machine's speed changes.
        return {
            name: seconds(reference, accelerators=others[name]) / seconds(reference)
            for name in names
        }

    with measure.frozen_heap():
        ratios = pair.alone(round_of_all, rounds=rounds)
    for name in names:
        figure = median(ratio[name] for ratio in ratios)
        pair.report(Row(EACH.format(name), reference.name, figure, "x"))


@pytest.mark.parametrize(
    ("make", "sizes"),
    [(large, (50, 100, 200, 400)), (deep, (100, 200, 400, 800, 1600))],
    ids=["large", "deep"],
)
def test_growth(pair: Pair, make: Callable[[int], Reference], sizes: tuple[int, ...]) -> None:
    """Report the exponent of the power of its size in which the time of a compile grows."""
    references = [make(size) for size in sizes]
    seconds(references[0])
    with measure.frozen_heap():
        rounds = pair.alone(lambda: [seconds(reference) for reference in references], rounds=2)
    times = [min(times) for times in zip(*rounds, strict=True)]
    exponent, _ = np.polyfit(np.log(sizes), np.log(times), 1)
    names = f"{references[0].name} to {references[-1].name}"
    pair.report(Row("exponent of growth, whole compile", names, float(exponent), "", ceiling=1.15))
