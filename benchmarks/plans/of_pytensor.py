"""Problems of PyTensor's graphs: as they are written, and as a compile fuses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph

from benchmarks.fusion.passes import graph_at_fusion
from benchmarks.graphs.growing import large
from benchmarks.graphs.log_densities import RADON
from benchmarks.graphs.named import pymc_references, reference_of_test_model
from benchmarks.graphs.small_models import MODELS
from benchmarks.plans.judge import Clusters, Judge
from benchmarks.plans.problems import extracted


def of_pytensor() -> Iterator[tuple[str, str, dict[str, Any], Clusters]]:
    """Yield problems of PyTensor's graphs, with stock's plans."""
    from support.checker import stock_plan

    for name, source, make in [*MODELS, *compiled_models()]:
        fgraph = make()
        found = extracted(fgraph, "c")
        judge = Judge(found.problem)
        ours = judge.cost([nodes for nodes, _, _ in found.plan.clusters()])
        # Elemwise nodes that cannot be fused are kernels of every plan, and not of the problem.
        given = (found.plan.after[0] - ours[0], found.plan.after[1] - ours[1])
        ids = {node: i for i, node in enumerate(found.arrays.nodes)}
        theirs = stock_plan(fgraph)
        stock = sorted(sorted(ids[node] for node in kernel.nodes) for kernel in theirs.kernels)
        kernels, arrays = judge.cost(stock)
        after = (theirs.kernels_after, theirs.arrays_after)
        assert (kernels + given[0], arrays + given[1]) == after
        yield name, source, found.problem, stock


def compiled_models() -> list[tuple[str, str, Callable[[], FunctionGraph]]]:
    """What compiles fuse: the models of the tests that are written in PyMC, and the demo's graphs.

    They are as a compile hands them to the fusion pass, simplified by the rewrites before, which
    are stock's alone. The list is as that of `MODELS`.

    Raises
    ------
    ModuleNotFoundError
        If PyMC is not installed.
    """
    from test_pymc_models import MODELS as OF_TESTS

    models = [*(reference_of_test_model(name, seed=3) for name in OF_TESTS), *pymc_references()]
    named = [
        *((one, "", "PyMC model with gradient, as a compile fuses it") for one in models),
        *(
            (one, "-compiled", "reference graph of the benchmarks, as a compile fuses it")
            for one in (large(25), RADON)
        ),
    ]
    words = str.maketrans({" ": "-", "_": "-", "(": "-", ")": None})
    return [
        (
            one.name.replace("PyMC", "pymc").translate(words) + end,
            source,
            lambda one=one: graph_at_fusion(one, Mode("py", "fast_run")),
        )
        for one, end, source in named
    ]
