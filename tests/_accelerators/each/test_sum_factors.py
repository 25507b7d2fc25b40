"""Distribution over sums: what is passed by would have been refused."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.rewriting import math

import pytensor_fuse
from support.switching import switched

if not pytensor_fuse.status()["accelerators"].parts["sum_factors"].is_on:
    pytest.skip("off in this PyTensor", allow_module_level=True)

from pytensor_fuse._accelerators.sum_factors import drop_in as sum_factors

x, y, z = pt.vectors("x", "y", "z")
f = pt.vector("f", dtype="float32")
i = pt.lvector("i")
LEAVES = [
    x,
    y,
    z,
    abs(x),
    pt.constant([2.0]),
    pt.constant([-1.0]),
    pt.constant([1.0]),
    pt.constant([0.0]),
    pt.constant([1.0, 2.0]),
    pt.constant([1e-200]),
    pt.constant([0.5], dtype="float32"),
    pt.constant([3]),
    f,
    i,
]
numbers = st.integers(0, len(LEAVES) - 1)
factors = st.lists(numbers, max_size=3)


@st.composite
def sums(draw: st.DrawFn) -> Any:
    """Sum of quotients of products, with factors to be put into it."""
    terms = []
    for num, denum in draw(st.lists(st.tuples(factors, factors), min_size=1, max_size=4)):
        over = pt.mul(*(LEAVES[k] for k in num)) if num else pt.constant([1.0])
        term = over / pt.mul(*(LEAVES[k] for k in denum)) if denum else over
        terms.append(-term if draw(st.booleans()) and draw(st.booleans()) else term)
    total = terms[0]
    for term in terms[1:]:
        total = total - term if draw(st.booleans()) else total + term
    put = [[LEAVES[k] for k in draw(factors)] for _ in range(2)]
    return total, *put


def described(result: Any) -> Any:
    changed, factor, num, denum = result
    made = pt.as_tensor_variable(factor)
    return changed, str_of(made), list(map(str_of, num)), list(map(str_of, denum))


def str_of(variable: Any) -> str:
    if variable.owner is None:
        data = getattr(variable, "data", None)
        return f"{variable.type} {variable.name} {data!r}"
    return f"{variable.owner.op}({', '.join(map(str_of, variable.owner.inputs))})"


# PyTensor divides by zero, as it puts constants together.
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(case=sums())
def test_the_same_is_put_into_the_same_sums(case: Any) -> None:
    total, num, denum = case
    for dtype in ("float64", "float32"):
        out_type = pt.vector(dtype=dtype).type
        with switched(accelerators=False):
            expected = math.attempt_distribution(total, list(num), list(denum), out_type)
        with switched(accelerators=["sum_factors"]):
            found = math.attempt_distribution(total, list(num), list(denum), out_type)
        assert described(found) == described(expected)
        assert (found[1] is total) == (expected[1] is total)


def test_what_gains_nothing_is_not_simplified() -> None:
    assert list(graph_inputs([x])) == [x]
    with switched(accelerators=["sum_factors"]):
        with mock.patch.object(math, "distribute_greedy", side_effect=AssertionError):
            for total in (x + y, x * 2.0 + y, 2.0 - x / z, x * y + z - 3.0):
                found = math.attempt_distribution(total, [f, i], [], x.type)
                assert not found[0]
        with mock.patch.object(math, "distribute_greedy", side_effect=AssertionError):
            for total in (x / f + y, x * 0.0 + y, 2.0 * x * 3.0 - y):
                with pytest.raises(AssertionError):
                    math.attempt_distribution(total, [f], [], x.type)
        assert sum_factors.has_own_factors(math.local_mul_canonizer)
