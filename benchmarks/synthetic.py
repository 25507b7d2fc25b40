"""Random graphs as arrays, large enough to show how the planner grows."""

from __future__ import annotations

from typing import Any

import numpy as np

# Inputs come from at most so many nodes back: a local graph, as those of programs are.
WINDOW = 64
N_GROUPS = 4
BARRIERS = 0.15
SECOND_INPUT = 0.7


def local_dag(n_nodes: int, *, seed: int, max_operands: int = 1024) -> dict[str, Any]:
    """Arguments for ``plan_arrays``: 1.7 inputs per node, 15 % barriers, 4 groups.

    Node ``i`` computes variable ``i``; the variables after those come from outside. A source before
    the first node is one of the latter. A variable that nothing reads is a result.
    """
    rng = np.random.default_rng(seed)
    n_outside = WINDOW
    n_variables = n_nodes + n_outside

    n_inputs = 1 + (rng.random(n_nodes) < SECOND_INPUT)
    input_offsets = np.concatenate([[0], np.cumsum(n_inputs)])
    reader = np.repeat(np.arange(n_nodes), n_inputs)
    sources = reader - rng.integers(1, WINDOW + 1, size=reader.size)
    inputs = np.where(sources >= 0, sources, n_nodes - 1 - sources)

    patterns = rng.integers(N_GROUPS, size=n_variables)
    barrier = rng.random(n_nodes) < BARRIERS
    results = np.ones(n_variables, dtype=bool)
    results[inputs] = False
    results[n_nodes:] = False
    return {
        "n_variables": n_variables,
        "input_offsets": input_offsets.astype(np.uint32),
        "inputs": inputs.astype(np.uint32),
        "output_offsets": np.arange(n_nodes + 1, dtype=np.uint32),
        "outputs": np.arange(n_nodes, dtype=np.uint32),
        "groups": np.where(barrier, -1, patterns[:n_nodes]).astype(np.int32),
        "links": patterns.astype(np.int32),
        "constants": np.zeros(n_variables, dtype=bool),
        "results": results,
        "max_operands": max_operands,
    }
