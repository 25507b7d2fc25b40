"""Random expressions of matrices of known structure, with gradients: as stock's, and no dearer."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pytensor.compile.mode import get_mode

from support.effort import IS_DEEP
from support.linalg.costs import KEEPING, operations
from support.linalg.expressions import densities_of, scalars_of, world
from support.linalg.rules import compile_both

WORLDS = {
    "small": world(2, 3, 1, is_static=True),
    "of unknown size": world(2, 3, 1, is_static=False),
    "larger": world(5, 5, 3, is_static=True),
}


def examples(name):
    """Return lists of numbers in a world, with its name."""
    terms = st.one_of(scalars_of(WORLDS[name]), densities_of(WORLDS[name]))
    return st.tuples(st.just(name), st.lists(terms, min_size=1, max_size=2))


def with_gradients(name, terms):
    inputs = list(WORLDS[name].values)
    cost = sum(pt.tanh(term / 50) for term in terms)
    return inputs, [cost, *pytensor.grad(cost, inputs, disconnected_inputs="ignore")]


def nearby(values):
    """Return values that differ by a few units in the last place: the first is symmetric."""
    rng = np.random.default_rng(0)
    moved = [one * (1 + 1e-14 * rng.normal(size=one.shape)) for one in values]
    moved[0] = (moved[0] + moved[0].T) / 2
    return moved


def check_values(ours, stock, values, what):
    """Compare with what stock gives, and by how much that changes with the last digits."""
    mine, theirs, others = ours(*values), stock(*values), stock(*nearby(values))
    for one, wanted, other in zip(mine, theirs, others, strict=True):
        scale = 1 + np.abs(wanted).max(initial=0)
        # In Python, stock's reciprocals are of single precision.
        bound = 1e-6 * scale + 1e4 * np.abs(wanted - other).max(initial=0)
        assert not np.isfinite(wanted).all() or np.abs(one - wanted).max(initial=0) <= bound, what
    return mine, theirs


def check_differences(ours, values, found):
    """Compare the gradients with differences of values, in one direction."""
    rng = np.random.default_rng(1)
    direction = [rng.normal(size=one.shape) for one in values]
    direction[0] = (direction[0] + direction[0].T) / 2

    def slope(step):
        ahead, behind = (
            ours(*[one + sign * step * by for one, by in zip(values, direction, strict=True)])[0]
            for sign in (1, -1)
        )
        return (ahead - behind) / (2 * step)

    wanted = sum((one * by).sum() for one, by in zip(found[1:], direction, strict=True))
    size = sum(np.abs(one * by).sum() for one, by in zip(found[1:], direction, strict=True))
    coarse, fine = slope(1e-5), slope(5e-6)
    # What oscillates has no slope that is seen from afar.
    assert abs(fine - wanted) <= 1e-4 * (1 + size) + 10 * abs(fine - coarse)


def check(name, terms):
    inputs, outputs = with_gradients(name, terms)
    values = list(WORLDS[name].values.values())
    ours, stock = compile_both(inputs, outputs, KEEPING)
    mine, theirs = check_values(ours, stock, values, name)
    n = len(values[0])
    ours(*values), stock(*values)
    cost, before = operations(ours, values, mine), operations(stock, values, theirs)
    # Passes over a matrix are not counted by the rules.
    assert cost <= before + 16 * n**2, (cost, before)
    if np.isfinite(mine[0]):
        check_differences(ours, values, mine)


def check_in(backend, name, terms):
    inputs, outputs = with_gradients(name, terms)
    ours, stock = compile_both(inputs, outputs, get_mode(backend))
    check_values(ours, stock, list(WORLDS[name].values.values()), name)


# Others compile for seconds.
BACKENDS = ["Python", "NUMBA", "CVM"] if IS_DEEP else ["Python"]
MOST = settings().max_examples // 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_value_and_gradients(backend):
    # Shrinking compiles hundreds of graphs.
    @settings(max_examples=MOST if backend == "Python" else MOST // 10, phases=[Phase.generate])
    @given(st.one_of(*map(examples, WORLDS)))
    def run(example):
        if backend == "Python":
            check(*example)
        else:
            check_in(backend, *example)

    run()
