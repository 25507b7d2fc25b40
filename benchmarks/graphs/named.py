"""The reference graphs by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.graphs.growing import deep, large
from benchmarks.graphs.joined import PRODUCERS, streams
from benchmarks.graphs.log_densities import GP, MIXTURE, RADON, STUDENT_T
from benchmarks.graphs.pymc_models import MODELS, N_COUNTIES, N_SCALARS
from benchmarks.graphs.reference import GraphIO, Reference, random_numbers


def has_pymc() -> bool:
    return find_spec("pymc") is not None


def reference_of_model(
    name: str, make: Callable[[], Any], shapes: Sequence[tuple[int, ...]] = ()
) -> Reference:
    """Log-density and gradient of a PyMC model; its data are constants.

    Its inputs have these shapes, if it is to be called.
    """

    def build() -> GraphIO:
        model = make()
        return list(model.continuous_value_vars), [model.logp(), model.dlogp()]

    def values(size: int) -> list[np.ndarray]:
        rng = random_numbers()
        return [np.asarray(rng.normal(scale=0.3, size=shape)) for shape in shapes]

    return Reference(name, build, values)


def reference_of_test_model(name: str, seed: int = 7) -> Reference:
    """A model of ``tests/test_pymc_models.py``, with data of that seed."""

    def make() -> Any:
        import pymc as pm

        from test_pymc_models import MODELS

        with pm.Model() as model:
            MODELS[name](np.random.default_rng(seed))
        return model

    return reference_of_model(f"PyMC {name}", make)


def pymc_references() -> list[Reference]:
    """Models written in PyMC; none where it is not installed."""
    if not has_pymc():
        return []
    counties = (N_COUNTIES,)
    models: list[tuple[str, str, int, list[tuple[int, ...]]]] = [
        ("radon", "radon-student-t", 919, [*[()] * 4, counties, counties, (), ()]),
        ("mixture(5)", "mixture", 300, [(4,), (5,), (5,)]),
        ("student-t(40)", "scalars-student-t", 200, [()] * (N_SCALARS + 2)),
    ]
    return [
        reference_of_model(f"pymc {name}", partial(MODELS[model].pymc, rows), shapes)
        for name, model, rows, shapes in models
    ]


def demo_references() -> list[Reference]:
    """The graphs of the demo: the PyMC model is among them where PyMC is installed."""
    return [deep(20), large(25), RADON, *pymc_references()[:1]]


def reference(name: str) -> Reference:
    """The reference graph that is called ``name``, for any ``n`` in those that have one."""
    for prefix, make in (("deep(", deep), ("large(", large)):
        if name.startswith(prefix) and name.endswith(")"):
            return make(int(name[len(prefix) : -1]))
    n_streams, _, producer = name.partition(" x ")
    if producer in PRODUCERS:
        return streams(producer, int(n_streams))
    if name.startswith("PyMC "):
        return reference_of_test_model(name.removeprefix("PyMC "))
    known = {r.name: r for r in [RADON, STUDENT_T, GP, MIXTURE, *pymc_references()]}
    if name not in known:
        shapes = f"deep(n), large(n), n x one of {[*PRODUCERS]}"
        raise ValueError(f"no reference graph {name!r}; known: {shapes}, {[*known]}")
    return known[name]
