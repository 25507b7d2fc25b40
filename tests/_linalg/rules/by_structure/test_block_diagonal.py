"""Work on block-diagonal matrices is done on their blocks, of sizes that are known or not."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import assume
from pytensor.compile.mode import JAX, get_mode
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.linalg import block_diag, cholesky, inv, slogdet, solve

import pytensor_fuse
from pytensor_fuse import explain
from support.effort import IS_DEEP
from support.linalg.rules import PYTHON, compile_both, only_linalg, positive_definite
from support.switching import switched

SIZES = 4, 3, 5
N = sum(SIZES)
RNG = np.random.default_rng(2)
Y = pt.dvector("y")
Z = pt.dmatrix("z")
RIGHT = [RNG.normal(size=N), RNG.normal(size=(N, 2))]
GENERAL = [RNG.normal(size=(n, n)) for n in SIZES]
DEFINITE = [positive_definite(n, seed=n) for n in SIZES]
# PyTensor's fused reciprocals are those of 32-bit floats where they are left to Python.
EXACT = PYTHON.excluding("fusion")


def blocks(*, known):
    return [pt.dmatrix(f"a{n}", shape=(n, n) if known else (None, None)) for n in SIZES]


def compare(inputs, outputs, values, mode=EXACT):
    ours, stock = compile_both(inputs, outputs, mode, EXACT)
    for mine, theirs in zip(ours(*values), stock(*values), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-10 * np.abs(theirs).max())
    return ours


def works_on_blocks(function):
    """Whether no matrix is made of the blocks."""
    names = {str(getattr(node.op, "core_op", node.op)) for node in function.maker.fgraph.toposort()}
    return not any("BlockDiagonal" in name for name in names)


def quadratic(matrix):
    return Y @ inv(matrix) @ Y + slogdet(matrix)[1]


OUTPUTS = {
    "solve": lambda k: [solve(k, Y), solve(k, Z), solve(k.T, Y)],
    "inverse times": lambda k: [inv(k) @ Y, Z.T @ inv(k), inv(k).T @ Z, Y @ inv(k) @ Z],
    "determinant": lambda k: [*slogdet(k), pt.linalg.det(k.T)],
    "density": lambda k: [quadratic(k)],
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("form", OUTPUTS)
def test_values(form, known):
    inputs = blocks(known=known)
    matrix = block_diag(*inputs)
    function = compare([*inputs, Y, Z], OUTPUTS[form](matrix), [*GENERAL, *RIGHT])
    assert works_on_blocks(function)


@pytest.mark.parametrize("known", [True, False])
def test_inverse_entry_by_entry(known):
    inputs = blocks(known=known)
    function = compare(inputs, [inv(block_diag(*inputs))], GENERAL)
    inverted = [node for node in function.maker.fgraph.toposort() if "Inverse" in str(node.op)]
    assert len(inverted) == len(SIZES)


@pytest.mark.parametrize("form", ["inverse", "solve"])
def test_gradients(form):
    inputs = blocks(known=False)
    matrix = block_diag(*inputs)
    solved = solve(matrix, Y) if form == "solve" else inv(matrix) @ Y
    cost = Y @ solved + slogdet(matrix)[1]
    outputs = [cost, *pytensor.grad(cost, [*inputs, Y])]
    function = compare([*inputs, Y], outputs, [*GENERAL, RIGHT[0]])
    assert works_on_blocks(function)


def test_compiled():
    a, b, _ = blocks(known=False)
    matrix = block_diag(a, b)
    cost = solve(matrix, Y).sum()
    # Numba takes a quarter of a minute for the solves of a gradient, which are PyTensor's.
    deep = [[cost, pytensor.grad(cost, a)]] if IS_DEEP else []
    # Together they would share a factorization, which takes longer to compile as well.
    for outputs in ([inv(matrix) @ Y], [slogdet(matrix)[1]], *deep):
        compare([a, b, Y], outputs, [*GENERAL[:2], RIGHT[0][:7]], get_mode("NUMBA"))


def test_gradient_by_parameters():
    """Also of a block that is used more than once, of elementwise products, and of sums."""
    a, b, _ = inputs = blocks(known=False)
    matrix = block_diag(a @ a.T, b * b, pt.exp(a), a.T)
    right = pt.concatenate([Y, Y])[: a.shape[0] * 3 + b.shape[0]]
    cost = right @ solve(matrix, right) + slogdet(matrix)[1]
    weighted = cost + (matrix * pt.outer(right, right)).sum() + (matrix @ matrix).sum()
    for one in (cost, weighted):
        outputs = [one, *pytensor.grad(one, [a, b])]
        compare([*inputs, Y], outputs, [*GENERAL, RIGHT[0]])


def test_one_factorization_for_each_block():
    inputs = blocks(known=False)
    definite = [one @ one.T + pt.eye(one.shape[0]) for one in inputs]
    matrix = block_diag(*definite)
    cost = quadratic(matrix)
    function = compare([*inputs, Y], [cost, *pytensor.grad(cost, inputs)], [*GENERAL, RIGHT[0]])
    factorized = [node for node in function.maker.fgraph.toposort() if "Cholesky{" in str(node.op)]
    assert len(factorized) == len(SIZES)
    assert not any("LU" in str(node.op) for node in function.maker.fgraph.toposort())


def test_what_is_supposed_of_the_whole_holds_for_blocks():
    inputs = blocks(known=False)
    matrix = block_diag(*inputs)
    known = assume(matrix, positive_definite=True)
    for outputs in (
        [solve(known, Y), solve(known, Z)],
        [solve(matrix, Y, assume_a="pos"), solve(matrix, Z, assume_a="sym")],
        [Y @ solve(known, Y) + slogdet(known)[1]],
    ):
        assert works_on_blocks(compare([*inputs, Y, Z], outputs, [*DEFINITE, *RIGHT]))
    factor = cholesky(matrix)
    compare(
        [*inputs, Y], [solve(factor, Y), pt.log(pt.diagonal(factor)).sum()], [*DEFINITE, RIGHT[0]]
    )


def test_log_determinant_that_overflows():
    """PyTensor alone takes logarithms of the determinants of the blocks."""
    inputs = blocks(known=False)
    logarithm = slogdet(block_diag(*inputs))[1]
    outputs = [logarithm, *pytensor.grad(logarithm, inputs[:1])]
    ours, _ = compile_both(inputs, outputs, EXACT)
    for scale in 1e-3, 1e3:
        values = [scale * np.eye(200) for _ in SIZES]
        value, gradient = ours(*values)
        assert value == pytest.approx(600 * np.log(scale))
        np.testing.assert_allclose(gradient, np.eye(200) / scale)


def test_blocks_that_are_not_square():
    """The matrix is singular: then PyTensor's solution is NaN, and here there is none."""
    wide, high = pt.dmatrices("wide", "high")
    ours, _ = compile_both([wide, high, Y], [solve(block_diag(wide, high), Y)], EXACT)
    with pytest.raises(ValueError, match="square"):
        ours(np.ones((2, 3)), np.ones((3, 2)), np.ones(5))
    wide, high = pt.dmatrix("wide", shape=(2, 3)), pt.dmatrix("high", shape=(3, 2))
    ours, stock = compile_both([wide, high, Y], [solve(block_diag(wide, high), Y)], EXACT)
    assert len(ours.maker.fgraph.apply_nodes) == len(stock.maker.fgraph.apply_nodes)


def test_left_alone():
    a, b, _ = inputs = blocks(known=False)
    other = pt.fmatrix("other")
    stack = pt.dtensor3("stack")
    cases = [
        ([*inputs], [block_diag(a, b) @ pt.ones((7, 2)), block_diag(a, b)[1:]], GENERAL),
        ([a, other], [slogdet(block_diag(a, other) + 1)[1]], [GENERAL[0], np.eye(3, dtype="f4")]),
        (
            [stack, Y],
            [solve(block_diag(stack, stack), Y[:8])],
            [RNG.normal(size=(2, 4, 4)), RIGHT[0]],
        ),
    ]
    for given, outputs, values in cases:
        ours, stock = compile_both(given, outputs, EXACT)
        assert len(ours.maker.fgraph.apply_nodes) == len(stock.maker.fgraph.apply_nodes)
        for mine, theirs in zip(ours(*values), stock(*values), strict=True):
            np.testing.assert_allclose(mine, theirs)


def test_whole_gradient_that_is_needed():
    inputs = blocks(known=False)
    matrix = block_diag(*inputs)
    cost = quadratic(matrix)
    compare([*inputs, Y], pytensor.grad(cost, [matrix, *inputs]), [*GENERAL, RIGHT[0]])


def test_jax_gets_no_sizes_that_are_known_only_when_it_runs():
    inputs = blocks(known=False)
    graph = FunctionGraph([*inputs, Y], [solve(block_diag(*inputs), Y)], clone=True)
    with pytensor_fuse.enabled(False), switched(**only_linalg()):
        JAX.optimizer.rewrite(graph)
    assert not any("Split" in str(node.op) for node in graph.apply_nodes)


def test_report():
    inputs = blocks(known=False)
    with pytensor_fuse.enabled(False), switched(**only_linalg()):
        function = pytensor.function([*inputs, Y], quadratic(block_diag(*inputs)), mode=EXACT)
    rules = {rule for report in explain(function, "linalg") for rule in report.rules}
    assert "linalg_block_diagonal_determinant" in rules


def test_gradient_of_products_of_blocks_that_are_not_square():
    a, b = pt.dmatrices("a", "b")
    matrix = block_diag(a, b)
    cost = (matrix @ matrix.T @ (matrix @ Y)).sum() ** 2
    outputs = [cost, *pytensor.grad(cost, [a, b, Y])]
    values = [RNG.normal(size=shape) for shape in [(2, 3), (3, 1), 4]]
    compare([a, b, Y], outputs, values)
