"""Whole compiles: the package, with and without accelerators, against stock PyTensor."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import pytensor
import pytest
from pytensor.graph.fg import FunctionGraph

import pytensor_fuse
from benchmarks.compiling.accelerators import MODE, compile_seconds
from benchmarks.graphs.named import (
    GP,
    MIXTURE,
    RADON,
    STUDENT_T,
    Reference,
    deep,
    large,
    reference_of_test_model,
)
from benchmarks.measuring.results import assert_same
from benchmarks.measuring.rows import Report, Row
from benchmarks.measuring.turns import frozen_heap, in_turns, ratio_of, seconds
from pytensor_fuse import freeze, status
from support.switching import switched

# Of `tests/test_pymc_models.py`.
PYMC_MODELS = ("hierarchical_regression", "student_t_regression", "mixture")

Settings = dict[str, Any]
# Settings of `switched`.
STOCK: Settings = {"flag": False}
PLAIN: Settings = {"accelerators": False}
OURS: Settings = {}


def compiled(reference: Reference, **settings: Any) -> Any:
    inputs, outputs = reference.build()
    with switched(**settings):
        return pytensor.function(inputs, outputs, mode=MODE)


def building_seconds(reference: Reference, **settings: Any) -> float:
    """Processor time of building a graph with its gradient; nothing is compiled."""
    with switched(**settings):
        return seconds(reference.build, clock=time.process_time)


def times_of(
    measure: Callable[..., float], sides: dict[str, Settings], rounds: int
) -> dict[str, list[float]]:
    """What each side takes in each round, with its settings."""
    with frozen_heap():
        runs = {name: partial(measure, **settings) for name, settings in sides.items()}
        return in_turns(runs, rounds, warmup=1)


@pytest.mark.parametrize(
    ("reference", "rounds"),
    [
        (RADON, 11),
        (deep(20), 21),
        (GP, 11),
        (STUDENT_T, 5),
        (MIXTURE, 11),
        (large(25), 5),
        (deep(400), 3),
        (deep(1600), 1),
        (large(100), 3),
        # Stock takes a quarter of a minute for it.
        (large(200), 1),
    ],
    ids=str,
)
def test_whole_compiles(report: Report, reference: Reference, rounds: int) -> None:
    compare(report, reference, rounds)


@pytest.mark.parametrize("name", PYMC_MODELS)
def test_whole_compiles_of_pymc_models(report: Report, name: str) -> None:
    compare(report, reference_of_test_model(name), 5)


def compare(report: Report, reference: Reference, rounds: int) -> None:
    """Report how many times faster the package compiles a graph: with accelerators, and by them."""
    sides = {"stock": STOCK, "plain": PLAIN, "ours": OURS}
    stock, without, ours = (compiled(reference, **side) for side in sides.values())
    assert freeze(ours.maker.fgraph).digest == freeze(without.maker.fgraph).digest
    # Kernels of more operands than NumPy takes do not run with the Python linker.
    if reference is not STUDENT_T and not reference.name.startswith(("large", "PyMC")):
        values = reference.values(10)
        assert_same(ours(*values), stock(*values))
    times = times_of(partial(compile_seconds, reference), sides, rounds)
    in_all, alone = (ratio_of(times[side], times["ours"]) for side in ("stock", "plain"))
    report(
        Row("whole compile, Python linker", reference.name, in_all),
        Row("whole compile, accelerators on against off", reference.name, alone),
    )


@pytest.mark.parametrize("reference", [RADON, GP, STUDENT_T, MIXTURE], ids=str)
def test_numba(report: Report, reference: Reference) -> None:
    """Report how many times faster a compile is whose kernels Numba finds on disk."""
    values = reference.values(10)
    sides: dict[str, Settings] = {"stock": STOCK, "ours": {"native": False}}
    for side in sides.values():
        with switched(**side):
            pytensor.function(*reference.build(), mode="NUMBA")(*values)
    times = times_of(partial(compile_seconds, reference, "NUMBA"), sides, 7)
    what = "whole compile, Numba that has compiled it before"
    report(Row(what, reference.name, ratio_of(*times.values())))


@pytest.mark.parametrize("name", PYMC_MODELS)
def test_building(report: Report, name: str) -> None:
    """Report how many times faster a model of PyMC is made, with its log-density's gradient."""
    reference = reference_of_test_model(name)
    digests = set()
    for flag in (False, True):
        with pytensor_fuse.enabled(flag):
            digests.add(freeze(FunctionGraph(*reference.build(), clone=False)).digest)
    assert len(digests) == 1
    sides = {"stock": STOCK, "ours": OURS}
    times = times_of(partial(building_seconds, reference), sides, 11)
    report(Row("building a model and its gradient", reference.name, ratio_of(*times.values())))


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
def test_faster_than_jax(
    report: Report, make: Callable[[int], Reference], n: int, rounds: int
) -> None:
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
    ours = pytensor.function(*reference.build(), mode="CVM")(*values)
    assert_same(ours, jax.tree.leaves(theirs()(*values)))

    def our_seconds() -> float:
        inputs, outputs = reference.build()
        return seconds(lambda: pytensor.function(inputs, outputs, mode=MODE))

    with frozen_heap():
        sides = {"JAX": partial(seconds, theirs), "ours": our_seconds}
        times = in_turns(sides, rounds, warmup=1)
    what = "whole compile, JAX / ours, by the clock"
    report(Row(what, reference.name, ratio_of(*times.values()), floor=1.0))


@pytest.mark.parametrize(
    ("reference", "rounds"),
    [
        (RADON, 15),
        (GP, 15),
        (STUDENT_T, 5),
        (deep(400), 7),
        (large(100), 3),
    ],
    ids=str,
)
def test_each_accelerator(report: Report, reference: Reference, rounds: int) -> None:
    """Report how many times longer a compile takes without one of them.

    The records in `pytensor_fuse._accelerators` have, of these figures, the largest for each.
    """
    names = [name for name, part in status()["accelerators"].parts.items() if part.is_on]
    others = {name: [other for other in names if other != name] for name in names}

    def without(name: str) -> float:
        # Next to each other, since the machine's speed changes.
        return compile_seconds(reference, accelerators=others[name]) / compile_seconds(reference)

    ratios = times_of(without, {name: {"name": name} for name in names}, rounds)
    for name, of_one in ratios.items():
        what = f"whole compile, with {name} against all others"
        report(Row(what, reference.name, median(of_one)))


@pytest.mark.parametrize(
    ("make", "sizes"),
    [(large, (50, 100, 200, 400)), (deep, (100, 200, 400, 800, 1600))],
    ids=["large", "deep"],
)
def test_growth(report: Report, make: Callable[[int], Reference], sizes: tuple[int, ...]) -> None:
    """Report the exponent of the power of its size in which the time of a compile grows."""
    references = [make(size) for size in sizes]
    found = times_of(compile_seconds, {one.name: {"reference": one} for one in references}, 2)
    exponent, _ = np.polyfit(np.log(sizes), np.log([min(times) for times in found.values()]), 1)
    names = f"{references[0].name} to {references[-1].name}"
    report(Row("exponent of growth, whole compile", names, float(exponent), "", ceiling=1.15))
