"""What a user says of a matrix: the result is the same, false statements are found."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg
from pytensor.tensor.linalg import inv, slogdet, solve
from pytensor.tensor.rewriting import assumptions

import pytensor_fuse
from pytensor_fuse.linalg import structured
from support.linalg.rules import PYTHON, compile_both, only_linalg, positive_definite
from support.switching import switched

EXACT = PYTHON.excluding("fusion")
A = pt.dmatrix("a")
Y = pt.dvector("y")
RNG = np.random.default_rng(4)
BLOCKS = np.zeros((7, 7))
BLOCKS[:3, :3], BLOCKS[3:, 3:] = positive_definite(3), positive_definite(4)
TOEPLITZ = scipy.linalg.toeplitz(np.arange(7.0))
BAND = np.triu(np.tril(RNG.normal(size=(7, 7)), 1), -2)
STATEMENTS = {
    "shape": ({"shape": (7, None)}, BAND),
    "blocks": ({"block_diagonal": (3, 4)}, BLOCKS),
    "one block": ({"block_diagonal": (7,)}, BAND),
    "empty block": ({"block_diagonal": (3, 0, 4)}, BLOCKS),
    "band": ({"banded": (2, 1)}, BAND),
    "wide band": ({"banded": (9, 0), "shape": (7, 7)}, np.tril(BAND)),
    "tridiagonal": ({"tridiagonal": True}, np.triu(BAND, -1)),
    "diagonal": ({"diagonal": True}, np.diag(np.diag(BAND))),
    "lower": ({"lower_triangular": True}, np.tril(BAND)),
    "upper": ({"upper_triangular": True}, np.triu(BAND)),
    "symmetric": ({"symmetric": True, "positive_definite": True}, BLOCKS),
    "toeplitz": ({"toeplitz": True}, TOEPLITZ),
    "definite toeplitz": (
        {"toeplitz": True, "shape": (7, None), "positive_definite": True},
        TOEPLITZ,
    ),
    "nothing": ({}, BAND),
}


def compiled(inputs, outputs):
    """Return the function with the feature alone: what is said has nothing to do with that."""
    with pytensor_fuse.enabled(False), switched(**only_linalg()):
        return pytensor.function(inputs, outputs, mode=EXACT)


@pytest.mark.parametrize(
    ("name", "check"),
    [*((name, True) for name in STATEMENTS), ("blocks", False), ("wide band", False)],
)
def test_identity(name, check):
    said, value = STATEMENTS[name]
    matrix = structured(A, check=check, **said)
    weights = RNG.normal(size=value.shape)
    outputs = [matrix, matrix.shape, pytensor.grad((matrix * weights).sum(), A)]
    result, shape, gradient = compiled([A], outputs)(value)
    np.testing.assert_array_equal(result, value)
    np.testing.assert_array_equal(shape, value.shape)
    if said.get("toeplitz"):
        # Only the first row counts.
        sums = [np.trace(weights, k) + np.trace(weights, -k) for k in range(1, len(value))]
        np.testing.assert_allclose(gradient[0], [np.trace(weights), *sums])
        assert not gradient[1:].any()
        return
    inside = (value != 0) | (gradient != 0)
    np.testing.assert_allclose(gradient[inside], weights[inside])


WRONG = {
    "shape": ({"shape": (6, None)}, "shape"),
    "blocks": ({"block_diagonal": (3, 4)}, "block-diagonal"),
    "sizes of blocks": ({"block_diagonal": (3, 3)}, "shape"),
    "band": ({"banded": (1, 1)}, "banded"),
    "tridiagonal": ({"tridiagonal": True}, "banded"),
    "diagonal": ({"diagonal": True}, "diagonal"),
    "lower": ({"lower_triangular": True}, "lower triangular"),
    "upper": ({"upper_triangular": True}, "upper triangular"),
    "symmetric": ({"symmetric": True}, "symmetric"),
    "toeplitz": ({"toeplitz": True}, "Toeplitz"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_statements_are_found(name):
    said, message = WRONG[name]
    matrix = structured(A, **said)
    function = compiled([A], [matrix + 0])
    with pytest.raises(AssertionError, match=message):
        function(RNG.normal(size=(7, 7)))


def test_what_is_outside_is_not_read_without_the_check():
    full = RNG.normal(size=(7, 7))
    for said, inside in (
        ({"block_diagonal": (3, 4)}, BLOCKS != 0),
        ({"tridiagonal": True}, np.tri(7, 7, 1) * np.tri(7, 7, 1).T),
    ):
        matrix = structured(A, check=False, **said)
        np.testing.assert_array_equal(compiled([A], [matrix])(full)[0], full * inside)


def test_nan_within_the_structure_passes():
    value = np.diag([1.0, np.nan, 2.0])
    for said in ({"tridiagonal": True}, {"symmetric": True}, {"block_diagonal": (1, 2)}):
        function = compiled([A], [structured(A, **said)])
        np.testing.assert_array_equal(function(value)[0], value)


@pytest.mark.parametrize(
    "said",
    [
        {"banded": (1, 1), "tridiagonal": True},
        {"banded": (1, 1), "block_diagonal": (2, 3)},
        {"banded": (-1, 1)},
        {"block_diagonal": ()},
        {"block_diagonal": (2, -1)},
    ],
)
def test_contradictions(said):
    with pytest.raises(ValueError, match=r"not|both"):
        structured(A, **said)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"block_diagonal": 3}, "block_diagonal is the sizes of the blocks, not 3"),
        ({"block_diagonal": "ab"}, "block_diagonal is the sizes of the blocks, not 'ab'"),
        ({"block_diagonal": (1, 2.5)}, "the size of a block is a whole number, not 2.5"),
        ({"banded": 1}, "banded is two numbers of diagonals, below and above, not 1"),
        ({"banded": ("a", 1)}, "a number of diagonals is a whole number, not 'a'"),
        ({"shape": 3}, "shape is the numbers of rows and columns, not 3"),
        ({"symmetric": "no"}, "symmetric must be True or False, not 'no'"),
        ({"check": 0}, "check must be True or False, not 0"),
    ],
    ids=str,
)
def test_what_is_said_is_of_the_right_type(said, message):
    with pytest.raises(TypeError, match=f"^{message}$"):
        structured(A, **said)


@pytest.mark.parametrize("said", [{"banded": (1, 1, 1)}, {"shape": (-1, 2)}], ids=str)
def test_what_is_said_is_of_the_right_size(said):
    with pytest.raises(ValueError, match="not "):
        structured(A, **said)


def test_not_a_matrix():
    with pytest.raises(ValueError, match="takes a matrix"):
        structured(Y)


def test_columns_say_the_rank():
    n, k = 120, 3
    thin = structured(A, shape=(n, k))
    diagonal = pt.exp(pt.dscalar("d"))
    matrix = diagonal * pt.eye(n) + thin @ thin.T
    cost = Y @ solve(matrix, Y) + slogdet(matrix)[1]
    inputs = [A, Y, diagonal.owner.inputs[0]]
    values = [RNG.normal(size=(n, k)), RNG.normal(size=n), 0.3]
    ours, stock = compile_both(inputs, [cost, *pytensor.grad(cost, inputs)], EXACT)
    for mine, theirs in zip(ours(*values), stock(*values), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)
    cubic = [node for node in ours.maker.fgraph.toposort() if "Cholesky{" in str(node.op)]
    assert [node.inputs[0].type.shape for node in cubic] == [(k, k)]


def test_blocks_are_worked_on():
    matrix = structured(A, block_diagonal=(3, 4), positive_definite=True)
    cost = Y @ inv(matrix) @ Y + slogdet(matrix)[1]
    ours, stock = compile_both([A, Y], [cost, pytensor.grad(cost, A)], EXACT)
    for mine, theirs in zip(ours(BLOCKS, np.ones(7)), stock(BLOCKS, np.ones(7)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-10)
    names = [str(node.op) for node in ours.maker.fgraph.toposort()]
    assert not any("BlockDiagonal" in name for name in names)
    if hasattr(assumptions, "local_drain_specify_assumptions"):
        assert sum(name.startswith("Cholesky{") for name in names) == 2


@pytest.mark.parametrize("parts", [{"banded": (2, 2)}, {"block_diagonal": (3, 4)}])
def test_check_does_not_hide_the_form(parts):
    matrix = pt.dmatrix()
    known = structured(matrix, symmetric=True, **parts)
    # PyTensor 3.3 has what is said on top of it.
    nodes = [known.owner, *(one.owner for one in known.owner.inputs if one.owner)]
    assert not any(str(node.op).startswith("Assert") for node in nodes)
    value = np.diag(np.arange(1.0, 8))
    function = pytensor.function([matrix], known)
    np.testing.assert_array_equal(function(value), value)
    value[0, 1] = 1
    with pytest.raises(AssertionError, match="symmetric"):
        function(value)
