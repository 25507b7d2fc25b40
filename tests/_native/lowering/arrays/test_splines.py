"""PyMC's ops: splines, and special functions that are recognized by nfunc_spec."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.scalar.basic import UnaryScalarOp, upgrade_to_float
from pytensor.tensor.elemwise import Elemwise
from scipy import special
from scipy.interpolate import InterpolatedUnivariateSpline, UnivariateSpline

from pytensor_fuse._native.lowering.registry import Lowering, lower
from support.native.lowering import raw_graph
from support.native.ways import check_ways

X = pt.matrix("x")
RANDOM = np.random.default_rng(0)
PLACES = np.sort(RANDOM.uniform(0, 5, 20))
VALUES = RANDOM.normal(size=20)


class Scaled(UnaryScalarOp):
    """A special function of SciPy, as other packages define them."""

    nfunc_spec = ("scipy.special.i0e", 1, 1)

    def impl(self, x: float) -> float:
        return float(special.i0e(x))


class Unknown(Scaled):
    """A function without an equivalent in this package."""

    nfunc_spec = ("scipy.special.i2e", 1, 1)


def test_special_functions_by_what_they_say_of_themselves() -> None:
    data = RANDOM.normal(scale=5, size=(3, 7))
    out = Elemwise(Scaled(upgrade_to_float, name="scaled"))(X)
    check_ways([X], [out], [data], rtol=1e-13, expected=[special.i0e(data)])
    fgraph = raw_graph([X], [Elemwise(Unknown(upgrade_to_float, name="unknown"))(X)])
    [node] = fgraph.apply_nodes
    assert lower.refusal(node) == "no rule for the scalar op unknown"


def test_rules_for_classes_by_name() -> None:
    own = Lowering()
    op = Scaled(upgrade_to_float, name="scaled")
    assert not own.has_rule(op)

    def rule(op, node, context, inputs):
        return inputs

    own.register_named(f"{__name__}.Scaled", refuses=lambda op, node: "no")(rule)
    assert own.has_rule(op)
    assert own.rule_name(op).endswith("rule")
    fgraph = raw_graph([X], [Elemwise(op)(X)])
    [node] = fgraph.apply_nodes
    assert own.refusal(node) == "no rule for Elemwise"


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("outside", ["extrapolate", "zeros", "const"])
def test_splines(degree: int, outside: str) -> None:
    splines = pytest.importorskip("pymc.distributions.dist_math")
    inner = [*RANDOM.uniform(-1, 6, 12), *PLACES[:5], PLACES[0], PLACES[-1]]
    data = np.array([inner, inner[::-1]])
    spline = splines.SplineWrapper(
        InterpolatedUnivariateSpline(PLACES, VALUES, k=degree, ext=outside)
    )
    check_ways([X], [spline(X), spline.grad_op(X)], [data], rtol=1e-9, forms=("raw",))


def test_other_splines() -> None:
    splines = pytest.importorskip("pymc.distributions.dist_math")
    data = RANDOM.uniform(-1, 6, (1, 12))
    data[0, 3] = np.nan
    smooth = UnivariateSpline(PLACES, VALUES, k=3, s=0.5, ext=1)
    check_ways([X], [splines.SplineWrapper(smooth)(X)], [data], rtol=1e-9, forms=("raw",))
    raising = UnivariateSpline(PLACES, VALUES, ext=2)
    for spline, why in ((raising, "raises outside"), (np.poly1d([1.0]), "not one of SciPy's")):
        [node] = raw_graph([X], [splines.SplineWrapper(spline)(X)]).apply_nodes
        assert why in (lower.refusal(node) or "")
