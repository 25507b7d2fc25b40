"""Work on Kronecker products is done on their factors."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import assume
from pytensor.compile.mode import get_mode
from pytensor.tensor.linalg import inv, kron, slogdet, solve

from support.linalg.rules import ORACLE, OTHER_BACKENDS, compile_both

LEFT, RIGHT = 12, 11
N = LEFT * RIGHT

A = pt.dmatrix("a", shape=(LEFT, LEFT))
B = pt.dmatrix("b", shape=(RIGHT, RIGHT))
Y = pt.dvector("y", shape=(N,))
NOISE = pt.dscalar("noise")
RNG = np.random.default_rng(5)
VALUES = [
    RNG.normal(size=(LEFT, LEFT)),
    RNG.normal(size=(RIGHT, RIGHT)),
    RNG.normal(size=N),
    np.array(0.3),
]
PLAIN = kron(A, B)
SHIFTED = kron(A @ A.T, B.T @ B) + pt.exp(NOISE) * pt.eye(N)
UPRIGHT = kron(A + A.T, assume(B.T @ B, symmetric=True)) - NOISE * pt.eye(N)
MATRICES = {"plain": PLAIN, "shifted": SHIFTED, "subtracted": UPRIGHT}


def compare(outputs, mode=ORACLE):
    inputs = [A, B, Y, NOISE]
    ours, stock = compile_both(inputs, outputs, mode, ORACLE)
    for mine, theirs in zip(ours(*VALUES), stock(*VALUES), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9 * np.abs(theirs).max())
    return ours


def largest(function):
    """Return the length of the largest square matrix that is worked on."""
    lengths = [
        variable.type.shape[0]
        for node in function.maker.fgraph.toposort()
        for variable in node.inputs
        if variable.type.ndim == 2 and not any(variable.type.broadcastable)
    ]
    return N + 1 if None in lengths else max(lengths)


@pytest.mark.parametrize("matrix", ["plain", "shifted"])
def test_solves_and_determinants(matrix):
    k = MATRICES[matrix]
    sign, logarithm = slogdet(k)
    for outputs in (
        [solve(k, Y)],
        [solve(k.T, Y)],
        [sign, logarithm],
        [y_solved(k) + logarithm],
        [inv(k) @ Y, Y @ inv(k)],
    ):
        assert largest(compare(outputs)) == LEFT


def y_solved(matrix):
    return Y @ inv(matrix) @ Y + Y @ solve(matrix, Y)


def test_products():
    assert largest(compare([PLAIN @ Y, Y @ PLAIN, PLAIN.T @ Y])) == LEFT


@pytest.mark.parametrize("backend", OTHER_BACKENDS)
def test_other_backends(backend):
    outputs = [slogdet(PLAIN)[1] + Y @ solve(SHIFTED, Y)]
    assert largest(compare(outputs, get_mode(backend))) == LEFT


def test_gradient():
    for k in PLAIN, SHIFTED:
        cost = y_solved(k) + slogdet(k)[1]
        compare([cost, *pytensor.grad(cost, [A, B, Y])])


def test_shift_that_makes_it_indefinite():
    sign, logarithm = slogdet(UPRIGHT)
    assert largest(compare([sign, logarithm, solve(UPRIGHT, Y)])) == LEFT


def test_log_determinant_that_overflows():
    """PyTensor alone multiplies the determinants of the factors."""
    ours, _ = compile_both([A, B], [slogdet(PLAIN)[1]], ORACLE)
    [value] = ours(np.eye(LEFT) * 1e12, np.eye(RIGHT) * 1e12)
    assert value == pytest.approx(N * 2 * np.log(1e12))
    ours, _ = compile_both([A, B, NOISE], [slogdet(SHIFTED)[1]], ORACLE)
    [value] = ours(np.eye(LEFT) * 1e3, np.eye(RIGHT) * 1e3, 0.0)
    assert value == pytest.approx(N * np.log(1e12 + 1))


def test_factors_of_less_precision_are_left_to_the_whole():
    single = pt.fmatrix("single", shape=(LEFT, LEFT))
    outputs = slogdet(kron(single, B))
    ours, stock = compile_both([single, B], outputs, ORACLE)
    values = [VALUES[0].astype("float32"), VALUES[1]]
    for mine, theirs in zip(ours(*values), stock(*values), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_left_alone():
    wide, high = pt.dmatrix("wide", shape=(2, 6)), pt.dmatrix("high", shape=(6, 2))
    square = kron(wide, high)
    small = pt.dmatrix("small", shape=(2, 2))
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(2, 6)), rng.normal(size=(6, 2)), rng.normal(size=(2, 2))]
    y = pt.constant(rng.normal(size=12))
    for outputs in (
        [solve(square + pt.eye(12), y)],
        [solve(kron(small @ small.T, small @ small.T) + pt.eye(4), y[:4])],
    ):
        mode = ORACLE.excluding("stabilize", "linalg_work_on_definite_matrix")
        ours, stock = compile_both([wide, high, small], outputs, mode)
        assert len(ours.maker.fgraph.apply_nodes) == len(stock.maker.fgraph.apply_nodes)
        for f in ours, stock:
            f(*values)
    # Neither is symmetric by its form.
    compare([solve(kron(A, B) + pt.eye(N), Y), slogdet(kron(A, B) + pt.eye(N))[1]])
