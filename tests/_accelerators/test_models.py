"""Graphs of the benchmarks and models of the corpus are compiled as without accelerators."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytensor.graph.fg import FunctionGraph

from support.accelerated import assert_same_compiles

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def models() -> dict[str, Callable[[], FunctionGraph]]:
    """Models by their names, each of them as it is made anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        corpus = runpy.run_path(str(BENCHMARKS / "models.py"))["MODELS"]
        graphs = runpy.run_path(str(BENCHMARKS / "graphs.py"))
    others = [graphs[name] for name in ("STUDENT_T", "GP", "MIXTURE")]
    others += [graphs["streams"]("tanh", 4), graphs["padded_affine"](None), graphs["packed"](20)]
    return {name: make for name, _, make in corpus} | {one.name: one.fgraph for one in others}


MODELS = models()


@pytest.mark.every(3)
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    def build() -> Any:
        fgraph = MODELS[name]()
        return fgraph.inputs, fgraph.outputs, {}

    assert_same_compiles(build, True, fails=False)
