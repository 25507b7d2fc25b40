"""Plans of problems that are given as arrays."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from pytensor_fuse import _core
from support.problems import problem, rows

EFFORT = 1000


def clusters(planned: tuple[Any, ...]) -> list[list[int]]:
    offsets, nodes = planned[:2]
    return [list(nodes[a:b]) for a, b in pairwise(offsets)]


def test_costs_are_kernels_and_arrays() -> None:
    planned = _core.plan_arrays(**problem(), effort=EFFORT)
    assert clusters(planned) == [[2, 3]]
    # Variables 0 and 3; 0, 1, 2, 4, 5 and 6.
    assert planned[2:] == ((3, 10), (2, 8), (2, 8))
    assert _core.plan_arrays(**problem())[2:] == ((3, 10), (2, 8), None)


@pytest.mark.parametrize("max_operands", [0, 1])
def test_no_bound_is_more_than_the_plan_costs_where_hardly_any_operand_is_allowed(
    max_operands: int,
) -> None:
    # The first node reads one variable twice, and no one reads what the second makes.
    input_offsets, inputs = rows([0, 0], [1])
    output_offsets, outputs = rows([1], [2])
    planned = _core.plan_arrays(
        n_variables=3,
        input_offsets=input_offsets,
        inputs=inputs,
        output_offsets=output_offsets,
        outputs=outputs,
        groups=np.zeros(2, dtype=np.int32),
        links=np.full(3, -1, dtype=np.int32),
        constants=np.zeros(3, dtype=bool),
        results=np.zeros(3, dtype=bool),
        max_operands=max_operands,
        effort=EFFORT,
    )
    cost = (1, 1) if max_operands else (2, 3)
    assert planned[2:] == ((2, 3), cost, cost)


def intricate(seed: int) -> dict[str, Any]:
    """A problem of up to 60 nodes, some with many operands, and as a rule a small operand limit."""
    random = Random(seed)
    n_nodes, n_roots = random.randrange(2, 60), random.randrange(1, 6)
    n_groups, limit = random.randrange(1, 4), random.choice([2, 3, 4, 6, 10, 30])
    widths = [1, 1, 2, 2, 3] + [8] * (random.random() < 0.5)
    n_variables = n_roots + n_nodes
    read: list[list[int]] = []
    for made in range(n_roots, n_variables):
        read.append([])
        for _ in range(random.choice(widths)):
            is_near = random.random() < 0.8
            first = max(0, made - random.choice([3, 10, 40])) if is_near else 0
            read[-1].append(random.randrange(first, made))
    input_offsets, inputs = rows(*read)
    output_offsets, outputs = rows(*([made] for made in range(n_roots, n_variables)))
    groups = [
        random.randrange(-1 if random.random() < 0.3 else 0, n_groups) for _ in range(n_nodes)
    ]
    links = [random.randrange(-1, n_groups) for _ in range(n_variables)]
    constants = [made < n_roots and random.random() < 0.1 for made in range(n_variables)]
    results = [random.random() < 0.15 or made == n_variables - 1 for made in range(n_variables)]
    return {
        "n_variables": n_variables,
        "input_offsets": input_offsets,
        "inputs": inputs,
        "output_offsets": output_offsets,
        "outputs": outputs,
        "groups": np.array(groups, dtype=np.int32),
        "links": np.array(links, dtype=np.int32),
        "constants": np.array(constants),
        "results": np.array(results),
        "max_operands": limit,
    }


@pytest.mark.parametrize(("seed", "kernels", "arrays"), [(100042, 13, 76), (100080, 6, 77)])
def test_moves_in_small_problems_of_wide_nodes_are_not_cut_short(
    seed: int, kernels: int, arrays: int
) -> None:
    assert _core.plan_arrays(**intricate(seed))[3] <= (kernels, arrays)
