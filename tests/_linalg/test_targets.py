"""The rules in the modes that PyTensor has, and the names by which they are asked for."""

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import assume
from pytensor.compile.mode import JAX, MLX, NUMBA, PYTORCH, get_mode, optdb
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.linalg import cholesky, inv, slogdet, solve, solve_triangular

import pytensor_fuse
from pytensor_fuse._activation.passes.linalg.known_ops import KnownOps
from support.effort import IS_DEEP
from support.linalg.cases import CASES, given
from support.linalg.rules import (
    ORACLE,
    PYTHON,
    check,
    compile_both,
    cubic,
    only_linalg,
    positive_definite,
)
from support.switching import switched

N = 6
A = pt.dmatrix("A")
Y = pt.dvector("y")
VALUES = [positive_definite(N), np.random.default_rng(3).normal(size=N)]
RULES = [
    "linalg_work_on_multiple",
    "linalg_work_on_definite_matrix",
    "linalg_sum_of_outer_products",
    "linalg_solve_of_outer_product",
    "linalg_solve_of_thin_product",
    "linalg_cholesky_gradient",
    "linalg_product_with_outer_product",
    "linalg_diagonal_of_product",
    "linalg_inverse_from_cholesky",
    "linalg_inverse_of_factorized_matrix",
    "linalg_determinant_of_factorized_matrix",
    "linalg_sum_of_diagonal_matrix",
    "linalg_solve_from_forward_solve",
    "linalg_diagonal_added_in_place",
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
    # The last leads to the ops of the one before it.
    count = 2 if mode == "NUMBA" and not IS_DEEP else 3
    for cost, work in list(densities())[:count]:
        outputs = [cost, *pytensor.grad(cost, [A, Y])]
        ours, _ = check([A, Y], outputs, VALUES, mode=get_mode(mode), rtol=1e-8, stock_mode=ORACLE)
        assert ours == work


OF_THIS_PACKAGE = {"LUInverse", "CholeskyInverse"}
LINKERS = {"JAX": JAX, "PYTORCH": PYTORCH, "MLX": MLX}


@pytest.mark.parametrize("name", LINKERS)
def test_targets_that_do_not_know_the_ops_get_none(name):
    # Their packages need not be there: the graph is rewritten, not compiled.
    for cost, work in densities():
        graph = FunctionGraph([A, Y], pytensor.grad(cost, [A, Y]), clone=True)
        with pytensor_fuse.enabled(False), switched(**only_linalg()):
            LINKERS[name].optimizer.rewrite(graph)
            names = {class_name(node.op) for node in graph.apply_nodes}
            assert not names & OF_THIS_PACKAGE
            # The same graph, for another target.
            again = FunctionGraph([A, Y], pytensor.grad(cost, [A, Y]), clone=True)
            get_mode("CVM").optimizer.rewrite(again)
            names = {class_name(node.op) for node in again.apply_nodes}
            assert names & OF_THIS_PACKAGE == set(work) & OF_THIS_PACKAGE


def class_name(op):
    return type(getattr(op, "core_op", op)).__name__


def rewritten_for(name, rules, settings):
    """Return the ops of a graph of the cases of rules, rewritten for a linker."""
    inputs = given()
    outputs = [one for rule in rules for one in CASES[rule](inputs)]
    graph = FunctionGraph(list(inputs), outputs, clone=True)
    with pytensor_fuse.enabled(False), switched(**settings):
        LINKERS[name].optimizer.rewrite(graph)
    return [getattr(node.op, "core_op", node.op) for node in graph.apply_nodes]


def names_registered_by(name):
    """Return the names of the classes of ops that PyTensor translates for a target."""
    package = import_module("pytensor.link")
    folder = Path(package.__path__[0]) / name.lower() / "dispatch"
    pattern = rf"{name.lower()}_funcify\.register\(\s*(?:[a-z_.]+\.)?(\w+)"
    return {found for one in folder.rglob("*.py") for found in re.findall(pattern, one.read_text())}


@pytest.mark.parametrize("name", LINKERS)
def test_no_rule_makes_what_a_target_does_not_know(name):
    """Nothing of this package, and no op that is not translated where stock has none."""
    stock = {type(op) for op in rewritten_for(name, CASES, {"linalg": False})}
    ours = {type(op) for op in rewritten_for(name, CASES, only_linalg())}
    assert not any(one.__module__.startswith("pytensor_fuse") for one in ours)
    known = names_registered_by(name)
    for one in ours - stock:
        assert known & {base.__name__ for base in one.__mro__}, one


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_jax_compiles_what_is_left():
    pytest.importorskip("jax")
    inputs = given()
    values = [value_of(one) for one in inputs]
    for rule, case in CASES.items():
        # JAX takes the most of the test: what stock computes, PyTensor's Python does, too.
        ours, stock = compile_both(inputs, case(inputs), "JAX", ORACLE)
        for mine, theirs in zip(ours(*values), stock(*values), strict=True):
            scale = 1 + np.abs(theirs).max()
            np.testing.assert_allclose(mine / scale, theirs / scale, atol=1e-7, err_msg=rule)


def value_of(variable):
    shape = variable.type.shape
    if len(shape) == 2 and shape[0] == shape[1]:
        return positive_definite(shape[0])
    return 0.1 + np.random.default_rng(0).random(shape)


def test_a_graph_may_be_rewritten_for_another_target():
    cost, _ = next(densities())
    graph = FunctionGraph([A, Y], pytensor.grad(cost, [A, Y]), clone=True)
    with pytensor_fuse.enabled(False), switched(**only_linalg()):
        for mode in get_mode("CVM").excluding("linalg_inverse_of_factorized_matrix"), JAX:
            mode.optimizer.rewrite(graph)
    assert not OF_THIS_PACKAGE & {class_name(node.op) for node in graph.apply_nodes}


def test_linkers_exclude_what_tells_them_apart():
    tags = [set(tags) for tags in KnownOps.TAGS.values()]
    for mode in LINKERS.values():
        excluded, required = mode.linker.incompatible_rewrites, mode.linker.required_rewrites
        assert all(of & set(excluded) or not of & {"fast_run", *required} for of in tags)
    excluded, required = NUMBA.linker.incompatible_rewrites, NUMBA.linker.required_rewrites
    assert any(not of & set(excluded) and of & {"fast_run", *required} for of in tags)


@pytest.mark.parametrize("mode", ["NUMBA", "CVM", PYTHON], ids=["NUMBA", "CVM", "Python"])
@pytest.mark.parametrize("tag", ["inplace", "BlasOpt", "cxx_only"])
def test_rules_do_not_hang_on_tags_of_others(mode, tag):
    cost, work = next(densities())
    graph = FunctionGraph([A, Y], pytensor.grad(cost, [A, Y]), clone=True)
    with pytensor_fuse.enabled(False), switched(**only_linalg()):
        get_mode(mode).excluding(tag).optimizer.rewrite(graph)
    names = {class_name(node.op) for node in graph.apply_nodes}
    assert names & OF_THIS_PACKAGE == set(work) & OF_THIS_PACKAGE


def test_mode_that_compiles_fast_is_left_alone():
    for cost, _ in densities():
        ours, stock = compile_both([A, Y], pytensor.grad(cost, [A]), mode="FAST_COMPILE")
        assert cubic(ours) == cubic(stock)


def test_names_are_there_while_the_feature_is_on():
    with pytensor_fuse.enabled():
        places = [optdb.__position__[name] for name in RULES]
        assert places == sorted(places)
        assert all(optdb[name].name == name for name in RULES)
    with switched(linalg=False):
        assert not any(name in optdb for name in RULES)


def test_rules_that_were_asked_for_follow_the_switch():
    with pytensor_fuse.enabled():
        kept = PYTHON.optimizer
    cost, _ = next(densities())
    graph = FunctionGraph([A, Y], [pytensor.grad(cost, A)])
    with pytensor_fuse.enabled(False):
        kept.rewrite(graph)
    assert not any("LUInverse" in str(node.op) for node in graph.apply_nodes)
