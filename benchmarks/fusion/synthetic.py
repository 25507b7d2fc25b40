"""Random graphs as arrays, large enough to show how the planner grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pytensor_fuse.graph import HashConsTable

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


def interned_dag(
    table: HashConsTable, n_nodes: int, *, seed: int, n_ops: int = 50
) -> dict[str, Any]:
    """Arguments for ``HashConsTable.intern``: two inputs per node, one near and one anywhere."""
    rng = np.random.default_rng(seed)
    position = np.arange(n_nodes) + WINDOW
    near = position - rng.integers(1, WINDOW + 1, size=n_nodes)
    far = (position * rng.random(n_nodes)).astype(np.int64)
    return {
        "leaves": table.symbols([b"leaf %d" % leaf for leaf in range(WINDOW)]),
        "ops": table.symbols([b"op %d" % op for op in range(n_ops)]),
        "types": table.symbols([b"float64"]),
        "node_ops": rng.integers(n_ops, size=n_nodes).astype(np.uint32),
        "input_offsets": np.arange(0, 2 * n_nodes + 1, 2, dtype=np.uint32),
        "inputs": np.stack([near, far], axis=1).ravel().astype(np.uint32),
        "type_offsets": np.arange(n_nodes + 1, dtype=np.uint32),
        "output_types": np.zeros(n_nodes, dtype=np.uint32),
    }
