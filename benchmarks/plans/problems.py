"""Fusion problems as integer arrays, and our plans of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from pytensor.graph.fg import FunctionGraph

from benchmarks.plans.judge import Clusters, Cost
from pytensor_fuse import _core
from pytensor_fuse._fusion.extract import extract
from pytensor_fuse._fusion.extract import plan as plan_extracted
from pytensor_fuse._pytensor.ops.targets import max_operands, resolve_target


def plan(problem: dict[str, Any], effort: int | None) -> tuple[Clusters, Cost, Cost | None]:
    """Return our clusters, their cost, and the bound if there is an effort."""

    def rows(lists: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        offsets = np.cumsum([0, *map(len, lists)], dtype=np.uint32)
        return offsets, np.array([i for row in lists for i in row], dtype=np.uint32)

    n_variables = len(problem["links"])
    flags = {}
    for name in ("constants", "results"):
        flags[name] = np.zeros(n_variables, dtype=bool)
        flags[name][problem[name]] = True
    input_offsets, inputs = rows(problem["inputs"])
    output_offsets, outputs = rows(problem["outputs"])
    offsets, nodes, _, after, bound = _core.plan_arrays(
        n_variables=n_variables,
        input_offsets=input_offsets,
        inputs=inputs,
        output_offsets=output_offsets,
        outputs=outputs,
        groups=np.array(problem["groups"], dtype=np.int32),
        links=np.array(problem["links"], dtype=np.int32),
        max_operands=problem["max_operands"],
        orderings=[(a, b) for a, b in problem["orderings"]],
        effort=effort,
        **flags,
    )
    return _lists(offsets.tolist(), nodes.tolist()), after, bound


@dataclass(frozen=True)
class Extracted:
    """What may be fused of a graph: its arrays, our plan, and the problem."""

    arrays: Any
    plan: Any
    problem: dict[str, Any]


def extracted(fgraph: FunctionGraph, linker: str | None) -> Extracted:
    """Return the problem of a graph of PyTensor's, as the files of the corpus have it."""
    target = resolve_target(linker, fgraph)
    graph = extract(fgraph)
    fused = plan_extracted(graph, target, max_operands(target))
    arrays = fused.problem()
    problem = {
        "inputs": _lists(arrays["input_offsets"], arrays["inputs"]),
        "outputs": _lists(arrays["output_offsets"], arrays["outputs"]),
        "groups": arrays["groups"],
        "links": arrays["links"],
        "constants": [i for i, flag in enumerate(arrays["constants"]) if flag],
        "results": [i for i, flag in enumerate(arrays["results"]) if flag],
        "orderings": [list(pair) for pair in arrays["orderings"]],
        "max_operands": arrays["max_operands"],
    }
    return Extracted(graph.arrays, fused, problem)


def _lists(offsets: Sequence[int], items: Sequence[int]) -> list[list[int]]:
    return [list(items[start:end]) for start, end in pairwise(offsets)]
