"""The inverse from a Cholesky factor: values, memory, what fails."""

import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg import cholesky
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky

from pytensor_fuse._linalg.ops.cholesky_inverse import CholeskyInverse, cholesky_inverse
from support.linalg.structures import BACKENDS, LAYOUTS, as_it_is, positive_definite

TOLERANCE = {"float64": 1e-11, "float32": 1e-3}


def compiled(backend, dtype="float64", **props):
    factor = pt.matrix("factor", dtype=dtype)
    return pytensor.function(
        [pytensor.In(factor, mutable=True, borrow=True)],
        CholeskyInverse(**props)(factor),
        mode=as_it_is(backend),
        accept_inplace=True,
    )


@pytest.mark.parametrize(
    ("lower", "overwrite", "dtype"),
    [
        (True, True, "float64"),
        (False, False, "float64"),
        (True, False, "float32"),
        (False, True, "float32"),
    ],
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_values_for_each_layout(backend, lower, overwrite, dtype):
    f = compiled(backend, dtype, lower=lower, overwrite_a=overwrite)
    for n in (0, 1, 2, 31, 33, 65, 130):
        a = positive_definite(n, dtype=dtype)
        factor = np.linalg.cholesky(a)
        # What the other triangle holds is not read.
        factor += np.triu(np.full_like(a, 7), 1)
        factor = factor if lower else factor.T
        expected = np.linalg.inv(a)
        for lay_out in LAYOUTS.values():
            given = lay_out(factor.copy())
            result = f(given)
            assert result.dtype == dtype
            assert result.shape == (n, n)
            np.testing.assert_allclose(result, expected, atol=TOLERANCE[dtype] * 10)
            np.testing.assert_array_equal(result, result.T)
            if not overwrite:
                np.testing.assert_array_equal(given, factor)


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_it_takes_over_memory_if_it_may(backend, layout):
    factor = LAYOUTS[layout](np.linalg.cholesky(positive_definite(50)))
    result = compiled(backend, overwrite_a=True)(factor)
    assert np.shares_memory(result, factor)


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_never_writes_over_what_must_not_be_written(backend):
    factor = np.asfortranarray(np.linalg.cholesky(positive_definite(5)))
    kept = factor.copy()
    factor.flags.writeable = False
    result = compiled(backend, overwrite_a=True)(factor)
    np.testing.assert_allclose(result, np.linalg.inv(positive_definite(5)))
    np.testing.assert_array_equal(factor, kept)


@pytest.mark.parametrize("mode", ["NUMBA", "CVM"])
def test_passes_let_it_write_over_a_factor_that_nothing_else_reads(mode):
    a = pt.matrix("a")
    factor = cholesky(a)
    f = pytensor.function([a], cholesky_inverse(factor), mode=mode)
    g = pytensor.function([a], [factor, cholesky_inverse(factor)], mode=mode)
    h = pytensor.function([a], cholesky_inverse(a), mode=mode)
    for function, overwrites in ((f, True), (g, False), (h, False)):
        [op] = [node.op for node in function.maker.fgraph.apply_nodes if is_inverse(node.op)]
        assert op.overwrite_a is overwrites
    value = positive_definite(20)
    np.testing.assert_allclose(f(value), np.linalg.inv(value))
    np.testing.assert_allclose(g(value)[0], np.linalg.cholesky(value))


def is_inverse(op):
    return isinstance(op, CholeskyInverse)


@pytest.mark.parametrize("mode", ["NUMBA", "CVM"])
def test_a_constant_is_left_alone(mode):
    factor = np.linalg.cholesky(positive_definite(5))
    scale = pt.scalar()
    f = pytensor.function([scale], scale * CholeskyInverse()(pt.constant(factor)), mode=mode)
    for _ in range(2):
        np.testing.assert_allclose(f(2.0), 2 * np.linalg.inv(positive_definite(5)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_has_no_inverse_is_nan(backend):
    f = compiled(backend)
    singular = np.tril(np.ones((4, 4)))
    singular[2, 2] = 0
    for factor in (singular, np.full((4, 4), np.nan)):
        assert np.isnan(f(factor)).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_matrix_that_is_not_positive_definite_gives_nan(backend):
    a = pt.matrix("a")
    f = pytensor.function([a], CholeskyInverse()(Cholesky()(a)), mode=as_it_is(backend))
    indefinite = np.diag([1.0, -1.0, 2.0])
    for matrix in (indefinite, np.zeros((3, 3)), np.full((3, 3), np.nan)):
        assert np.isnan(f(matrix)).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_negative_diagonal_is_as_good(backend):
    a = positive_definite(6)
    factor = np.linalg.cholesky(a) * np.array([1, -1, 1, -1, -1, 1])
    np.testing.assert_allclose(compiled(backend)(factor), np.linalg.inv(a))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(2, 3), (0, 1)])
def test_it_must_be_square(backend, shape):
    with pytest.raises(np.linalg.LinAlgError, match="must be square"):
        compiled(backend)(np.ones(shape))


@pytest.mark.parametrize("factor", [pt.vector(), pt.zmatrix(), pt.imatrix(), pt.tensor3()])
def test_it_takes_real_matrices(factor):
    with pytest.raises(TypeError, match="the factor must be a matrix of float32 or float64"):
        CholeskyInverse()(factor)


@pytest.mark.parametrize("mode", ["NUMBA", "CVM"])
def test_batches(mode):
    a = pt.tensor3("a")
    f = pytensor.function([a], cholesky_inverse(cholesky(a)), mode=mode)
    matrices = np.stack([positive_definite(4, seed=seed) for seed in range(3)])
    np.testing.assert_allclose(f(matrices), np.linalg.inv(matrices), atol=1e-12)
    if mode == "NUMBA":  # PyTensor's Blockwise has no batches of nothing elsewhere.
        assert f(matrices[:0]).shape == (0, 4, 4)


def test_its_shape_is_that_of_the_factor():
    factor = pt.matrix("factor", shape=(None, 3))
    op = CholeskyInverse()
    f = pytensor.function([factor], op(factor).shape, mode="FAST_RUN", on_unused_input="ignore")
    assert not any(is_inverse(node.op) for node in f.maker.fgraph.apply_nodes)
    assert tuple(f(np.eye(3))) == (3, 3)


def test_numba_can_cache_it():
    keys = set()
    for props in ({}, {"lower": False}, {"overwrite_a": True}):
        node = CholeskyInverse(**props)(pt.matrix()).owner
        _, key = numba_funcify_and_cache_key(node.op, node=node)
        other = pickle.loads(pickle.dumps(node.op))
        assert other == node.op
        assert other.destroy_map == node.op.destroy_map
        assert numba_funcify_and_cache_key(other, node=node)[1] == key
        keys.add(key)
    assert None not in keys
    assert len(keys) == 3


def test_blockwise_knows_its_signature():
    inverse = cholesky_inverse(pt.tensor4("factor", shape=(2, None, 3, 3)))
    assert isinstance(inverse.owner.op, Blockwise)
    assert inverse.owner.op.signature == "(m,m)->(m,m)"
    assert inverse.type.shape == (2, None, 3, 3)
