"""The rules in the modes that PyTensor has, and the names by which they are asked for."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import assume
from pytensor.compile.mode import get_mode, optdb
from pytensor.tensor.linalg import cholesky, inv, slogdet, solve, solve_triangular

import pytensor_fuse
from support.linalg_rules import PYTHON, check, compile_both, cubic, positive_definite

N = 6
A = pt.dmatrix("A")
Y = pt.dvector("y")
VALUES = [positive_definite(N), np.random.default_rng(3).normal(size=N)]
RULES = [
    "linalg_work_on_definite_matrix",
    "linalg_solve_of_outer_product",
    "linalg_solve_of_thin_product",
    "linalg_cholesky_gradient",
    "linalg_product_with_outer_product",
    "linalg_diagonal_of_product",
    "linalg_inverse_from_cholesky",
    "linalg_inverse_of_factorized_matrix",
]


def densities():
    known = assume(A, positive_definite=True)
    factor = cholesky(A)
    white = solve_triangular(factor, Y, lower=True)
    yield Y @ inv(A) @ Y + slogdet(A)[1], {"LUFactor": 1, "LUInverse": 1}
    yield Y @ solve(known, Y) + slogdet(known)[1], {"Cholesky": 1, "CholeskyInverse": 1}
    yield (
        white @ white + 2 * pt.log(pt.diagonal(factor)).sum(),
        {
            "Cholesky": 1,
            "CholeskyInverse": 1,
        },
    )


@pytest.mark.parametrize("mode", ["NUMBA", "CVM"])
def test_modes(mode):
    for cost, work in densities():
        outputs = [cost, *pytensor.grad(cost, [A, Y])]
        ours, _ = check([A, Y], outputs, VALUES, mode=get_mode(mode), rtol=1e-8)
        assert ours == work


def test_mode_that_compiles_fast_is_left_alone():
    for cost, _ in densities():
        ours, stock = compile_both([A, Y], pytensor.grad(cost, [A]), mode="FAST_COMPILE")
        assert cubic(ours) == cubic(stock)


def test_names_are_there_while_the_feature_is_on():
    with pytensor_fuse.enabled():
        places = [optdb.__position__[name] for name in RULES]
        assert places == sorted(places)
        assert all(optdb[name].name == name for name in RULES)
    with pytensor_fuse.enabled(linalg=False):
        assert not any(name in optdb for name in RULES)


def test_rules_that_were_asked_for_follow_the_switch():
    with pytensor_fuse.enabled():
        kept = PYTHON.optimizer
    cost, _ = next(densities())
    graph = pytensor.graph.fg.FunctionGraph([A, Y], [pytensor.grad(cost, A)])
    with pytensor_fuse.enabled(False):
        kept.rewrite(graph)
    assert not any("LUInverse" in str(node.op) for node in graph.apply_nodes)
