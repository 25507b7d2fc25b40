"""Graphs of the benchmarks and models of the corpus are compiled as without accelerators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pytensor.graph.fg import FunctionGraph

from benchmarks.graphs.joined import padded_affine, streams
from benchmarks.graphs.log_densities import GP, MIXTURE, STUDENT_T
from benchmarks.graphs.packed import packed
from benchmarks.graphs.small_models import MODELS as SMALL_MODELS
from support.accelerated import assert_same_compiles


def models() -> dict[str, Callable[[], FunctionGraph]]:
    """Models by their names, each of them as it is made anew."""
    others = [STUDENT_T, GP, MIXTURE, streams("tanh", 4), padded_affine(None), packed(20)]
    return {name: make for name, _, make in SMALL_MODELS} | {one.name: one.fgraph for one in others}


MODELS = models()


@pytest.mark.every(3)
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    def build() -> Any:
        fgraph = MODELS[name]()
        return fgraph.inputs, fgraph.outputs, {}

    assert_same_compiles(build, True, fails=False)
