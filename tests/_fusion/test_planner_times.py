"""Planning adversarial graphs: the processor's times, which were several times as long."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from pytensor_fuse import _core


def problem(
    reads: list[list[int]],
    groups: list[int],
    links: list[int],
    *,
    n_roots: int = 1,
    orderings: list[tuple[int, int]] | None = None,
) -> dict[str, Any]:
    """Nodes of one output each after variables from outside, as arguments of `plan_arrays`."""
    n_variables = n_roots + len(reads)
    results = np.zeros(n_variables, dtype=bool)
    results[-1] = True
    return {
        "n_variables": n_variables,
        "input_offsets": np.array([0, *accumulate(map(len, reads))], dtype=np.uint32),
        "inputs": np.array([v for row in reads for v in row], dtype=np.uint32),
        "output_offsets": np.arange(len(reads) + 1, dtype=np.uint32),
        "outputs": np.arange(n_roots, n_variables, dtype=np.uint32),
        "groups": np.array(groups, dtype=np.int32),
        "links": np.array(links, dtype=np.int32),
        "constants": np.zeros(n_variables, dtype=bool),
        "results": results,
        "max_operands": 1024,
        "orderings": orderings or [],
    }


def ordered(n: int) -> dict[str, Any]:
    """Readers of one operand, each with an ordering before the next but one."""
    orderings = [(i, i + 2) for i in range(n - 2)]
    return problem([[0]] * n, [0] * n, [0] * (n + 1), orderings=orderings)


def ordered_in_three_groups(n: int) -> dict[str, Any]:
    return ordered(n) | {"groups": np.arange(n, dtype=np.int32) % 3}


def pairs(n: int) -> dict[str, Any]:
    """Groups of two nodes that share an operand."""
    groups = [i // 2 for i in range(n)]
    return problem([[g] for g in groups], groups, [*range(n // 2), *[-1] * n], n_roots=n // 2)


def long_rows(n: int) -> dict[str, Any]:
    """Few nodes of very many operands."""
    return problem([list(range(n))] * 5, [0] * 5, [0] * (n + 5), n_roots=n)


# 8 s and more before; now 1.5, 1.5, 0.2 and 0.5.
@pytest.mark.parametrize(
    ("family", "n"),
    [(ordered, 16_000), (ordered_in_three_groups, 40_000), (pairs, 40_000), (long_rows, 70_000)],
)
def test_adversarial_graphs_are_planned_in_time(
    family: Callable[[int], dict[str, Any]], n: int
) -> None:
    arrays = family(n)
    start = time.process_time()
    _core.plan_arrays(**arrays)
    assert time.process_time() - start < 5
