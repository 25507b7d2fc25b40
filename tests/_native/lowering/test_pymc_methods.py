"""PyMC's ops are recognized as long as their methods have known sources."""

from __future__ import annotations

from typing import Any

import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.interpolate import InterpolatedUnivariateSpline

from pytensor_fuse._native.lowering.random.numbers import number_of_pymc
from pytensor_fuse._native.lowering.registry import lower
from support.native.lowering import raw_graph


# The line that draws is PyMC's, but the code before it is not.
def rng_fn_scipy(cls: Any, rng: Any, lower: Any, upper: Any, size: Any = None) -> Any:
    lower = lower + 1
    return stats.randint.rvs(lower, upper + 1, size=size, random_state=rng)


def test_methods_that_draw_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    discrete = pytest.importorskip("pymc.distributions.discrete")
    continuous = pytest.importorskip("pymc.distributions.continuous")
    assert number_of_pymc(discrete.discrete_uniform) is not None
    assert number_of_pymc(continuous.wald) is not None
    assert number_of_pymc(pt.random.normal) is None
    kind = type(discrete.discrete_uniform)
    with monkeypatch.context() as patch:
        patch.setattr(kind, "rng_fn_scipy", classmethod(rng_fn_scipy))
        assert number_of_pymc(discrete.discrete_uniform) is None
    with monkeypatch.context() as patch:
        patch.delattr(kind, "rng_fn_scipy")
        assert number_of_pymc(discrete.discrete_uniform) is None
    assert number_of_pymc(discrete.discrete_uniform) is not None


def test_splines_that_are_computed_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = pytest.importorskip("pymc.distributions.dist_math").SplineWrapper
    x = pt.vector("x")
    spline = InterpolatedUnivariateSpline(range(5), range(5))
    [node] = raw_graph([x], [kind(spline)(x)]).apply_nodes
    assert lower.refusal(node) is None

    def perform(self: Any, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = 2 * self.spline(inputs[0])

    monkeypatch.setattr(kind, "perform", perform)
    assert "in another way" in (lower.refusal(node) or "")
