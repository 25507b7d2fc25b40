"""Random programs of graphs, which shrink."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from support.random_graphs.building import (
    INPUT_TYPES,
    N_KINDS,
    N_PLAIN_KINDS,
    N_REAL_INPUT_TYPES,
    Program,
)


def _numbers(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most)


def programs(
    max_steps: int = 14, *, complex_numbers: bool = True, widen: bool = True
) -> st.SearchStrategy[Program]:
    """Draw programs that use every kind of node.

    Parameters
    ----------
    complex_numbers
        Whether there may be complex inputs.
    widen
        Whether there may be hand-made nodes, whose type is less specific than their Op would infer.
    """
    n_types = len(INPUT_TYPES) if complex_numbers else N_REAL_INPUT_TYPES
    last_kind = N_KINDS - 1 if widen else N_KINDS - 2
    return st.builds(
        Program,
        inputs=st.lists(_numbers(n_types - 1), min_size=1, max_size=4).map(tuple),
        steps=st.lists(
            st.tuples(_numbers(last_kind), _numbers(12), _numbers(12), _numbers(12)),
            max_size=max_steps,
        ).map(tuple),
        outputs=st.lists(_numbers(12), max_size=3).map(tuple),
    )


def plain_programs(max_steps: int = 20) -> st.SearchStrategy[Program]:
    """Draw programs on vectors alone, in which nearly everything could be fused."""
    return st.builds(
        Program,
        inputs=st.lists(st.just(0), min_size=1, max_size=3).map(tuple),
        steps=st.lists(
            st.tuples(_numbers(N_PLAIN_KINDS - 1), _numbers(9), _numbers(9), _numbers(4)),
            max_size=max_steps,
        ).map(tuple),
        outputs=st.lists(_numbers(9), max_size=2).map(tuple),
        plain=st.just(True),
    )


def any_programs(max_steps: int = 16, *, widen: bool = True) -> st.SearchStrategy[Program]:
    return st.one_of(plain_programs(max_steps), programs(max_steps, widen=widen))


def seeded_program(seed: int, n_steps: int = 40, *, plain: bool = False) -> Program:
    """Return a program drawn without Hypothesis, the same in every process, without widening."""
    rng = np.random.default_rng(seed)
    kinds = N_PLAIN_KINDS if plain else N_KINDS - 1
    steps = tuple(
        (int(rng.integers(kinds)), *(int(v) for v in rng.integers(0, 13, 3)))
        for _ in range(n_steps)
    )
    return Program(
        inputs=tuple(int(v) for v in rng.integers(0, len(INPUT_TYPES), 4)),
        steps=steps,
        outputs=tuple(int(v) for v in rng.integers(0, 13, 3)),
        plain=plain,
    )
