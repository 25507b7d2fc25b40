"""What is positive by its form."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_fuse._linalg.structure.signs import Sign, sign_of
from support.linalg.rules import PYTHON

X = pt.dvector("x")
S = pt.dscalar("s")

POSITIVE = [
    pt.exp(X),
    pt.softplus(X),
    pt.sigmoid(X),
    X**2 + 0.1,
    abs(X) + pt.exp(S),
    pt.sqr(pt.exp(X)),
    pt.sqrt(pt.exp(X)),
    pt.exp(X) * pt.exp(S) / 3.0,
    1 / pt.exp(X),
    pt.exp(X) ** S,
    pt.maximum(X, 0.5),
    pt.minimum(pt.exp(X), 0.5),
    pt.alloc(pt.exp(S), 3),
    pt.concatenate([pt.exp(X), pt.constant([1.0])]),
    pt.stack([pt.exp(S), 2.0]),
    pt.switch(X > 0, pt.exp(X), 1.0),
    pt.exp(X)[1:],
    pt.diagonal(pt.exp(pt.outer(X, X))),
    pt.exp(X).astype("float32"),
    pt.cosh(X),
    X * X + pt.constant([0.5, 1.0, 2.0]),
]

NONNEGATIVE = [
    X**2,
    abs(X),
    pt.sqrt(abs(X)),
    X * X,
    pt.exp(X) * abs(X),
    X**4,
    pt.diagonal(pt.diag(pt.exp(X))),
    pt.exp(X).sum(),
    pt.constant([0.0, 1.0]),
    pt.maximum(X, 0.0),
]

NEITHER = [
    X,
    -pt.exp(X),
    pt.exp(X) - 1,
    pt.log(X),
    X**3,
    X * S,
    pt.exp(X) + X,
    pt.constant([-1.0, 1.0]),
    pt.minimum(pt.exp(X), X),
    pt.switch(X > 0, pt.exp(X), X),
    pt.concatenate([pt.exp(X), X]),
    pt.tanh(X),
    pt.dscalar("another") * S,
    X**S,
    pt.exp(X.astype("complex128")),
]


@pytest.mark.parametrize("variable", POSITIVE)
def test_positive(variable):
    assert sign_of(variable) is Sign.POSITIVE


@pytest.mark.parametrize("variable", NONNEGATIVE)
def test_nonnegative(variable):
    assert Sign.NONNEGATIVE <= sign_of(variable) < Sign.POSITIVE


@pytest.mark.parametrize("variable", NEITHER)
def test_neither(variable):
    assert sign_of(variable) is Sign.UNKNOWN


@pytest.mark.parametrize("variable", POSITIVE + NONNEGATIVE)
def test_by_values(variable):
    function = pytensor.function([X, S], variable, mode=PYTHON, on_unused_input="ignore")
    for x in np.array([-3.0, -1, 2]), np.zeros(3), np.array([1e-3, 5, -7]):
        for s in -2.0, 0.0, 3.0:
            with np.errstate(invalid="ignore"):
                values = function(x, s)
            least = np.min(values[~np.isnan(values)], initial=1)
            assert least > 0 if sign_of(variable) is Sign.POSITIVE else least >= 0
