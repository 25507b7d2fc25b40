"""The inverse of a symmetric matrix from LU factors: values, memory, what fails."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key
from pytensor.tensor.linalg import lu_factor

from pytensor_fuse._linalg.ops.lu_inverse import LUInverse, lu_inverse
from pytensor_fuse._linalg.ops.symmetric_lu import (
    BLOCK,
    LEAST_ROWS,
    LEAST_ROWS_COMPILED,
    inverse_of_symmetric,
)
from support.extended import error, inverse_columns
from support.linalg.structures import BACKENDS, KINDS, LAYOUTS, as_it_is

# From these on one triangle is computed.
ENOUGH = {"NUMBA": LEAST_ROWS_COMPILED, "CVM": LEAST_ROWS, "py": LEAST_ROWS}


def indefinite(n, condition=100.0, *, seed=0, dtype="float64"):
    """Return a symmetric matrix with eigenvalues of both signs, whose rows pivoting moves."""
    rng = np.random.default_rng(seed)
    vectors, _ = np.linalg.qr(rng.normal(size=(n, n)))
    eigenvalues = np.geomspace(1 / condition, 1, n) * rng.choice([-1, 1], size=n)
    matrix = (vectors * eigenvalues) @ vectors.T
    return ((matrix + matrix.T) / 2).astype(dtype)


def by_getri(matrix):
    getri, lwork = scipy.linalg.get_lapack_funcs(("getri", "getri_lwork"), (matrix,))
    return getri(*scipy.linalg.lu_factor(matrix), lwork=int(lwork(len(matrix))[0].real))[0]


def compiled(backend, dtype="float64", overwrite=False):
    packed, pivots = pt.matrix("packed", dtype=dtype), pt.vector("pivots", dtype="int32")
    return pytensor.function(
        [pytensor.In(packed, mutable=True, borrow=True), pivots],
        LUInverse(overwrite_a=overwrite, symmetric=True)(packed, pivots),
        mode=as_it_is(backend),
        accept_inplace=True,
    )


@pytest.mark.parametrize("n", [1, 2, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 150])
def test_above_the_diagonal_it_is_what_getri_computes(n):
    matrix = indefinite(n)
    packed, pivots = scipy.linalg.lu_factor(matrix)
    computed = inverse_of_symmetric(packed, pivots, overwrite=False)
    np.testing.assert_array_equal(computed, computed.T)
    np.testing.assert_allclose(computed, by_getri(matrix), rtol=0, atol=1e-12 * 100)
    np.testing.assert_array_equal(packed, scipy.linalg.lu_factor(matrix)[0])


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.lists(st.integers(-9, 9), min_size=n * n, max_size=n * n)
    )
)
def test_small_matrices_of_integers(entries):
    n = round(len(entries) ** 0.5)
    matrix = np.array(entries, float).reshape(n, n)
    matrix = matrix + matrix.T
    if abs(np.linalg.det(matrix)) < 0.5:
        # Of integers the determinant is one: here it is 0.
        return
    with np.errstate(all="ignore"):
        computed = inverse_of_symmetric(*scipy.linalg.lu_factor(matrix), overwrite=False)
    expected = by_getri(matrix)
    scale = abs(expected).max() * np.linalg.cond(matrix)
    np.testing.assert_allclose(computed, expected, rtol=0, atol=1e-13 * scale)


@pytest.mark.parametrize("condition", [1e2, 1e7, 1e12])
@pytest.mark.parametrize("n", [5, 20, 100])
def test_the_error_is_that_of_getri(n, condition):
    matrix = indefinite(n, condition)
    columns = range(0, n, max(1, n // 4))
    reference = inverse_columns(matrix, columns)
    computed = inverse_of_symmetric(*scipy.linalg.lu_factor(matrix), overwrite=False)
    by_hand = error(by_getri(matrix)[:, columns], reference)
    assert error(computed[:, columns], reference) <= 3 * max(by_hand, np.finfo(float).eps)


@pytest.mark.parametrize(("backend", "overwrite", "dtype"), KINDS)
def test_values_for_each_layout(backend, overwrite, dtype):
    f = compiled(backend, dtype, overwrite=overwrite)
    tolerance = {"float64": 1e-9, "float32": 1e-1}[dtype]
    for n in (1, 30, ENOUGH[backend], ENOUGH[backend] + 37):
        matrix = indefinite(n, 10.0, dtype=dtype)
        packed, pivots = scipy.linalg.lu_factor(matrix)
        expected = by_getri(matrix)
        for lay_out in LAYOUTS.values():
            given_packed, given_pivots = lay_out(packed.copy()), pivots.copy()
            result = f(given_packed, given_pivots)
            assert result.dtype == dtype
            np.testing.assert_allclose(result, expected, atol=tolerance)
            np.testing.assert_array_equal(given_pivots, pivots)
            if n >= ENOUGH[backend]:
                np.testing.assert_array_equal(result, result.T)
            if not overwrite:
                np.testing.assert_array_equal(given_packed, packed)
    assert f(np.empty((0, 0), dtype), np.empty(0, "int32")).shape == (0, 0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_takes_over_memory_if_it_may(backend):
    packed, pivots = scipy.linalg.lu_factor(indefinite(ENOUGH[backend]))
    packed = np.asfortranarray(packed)
    assert np.shares_memory(compiled(backend, overwrite=True)(packed, pivots), packed)


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_never_writes_over_what_must_not_be_written(backend):
    matrix = indefinite(ENOUGH[backend])
    packed, pivots = scipy.linalg.lu_factor(matrix)
    packed = np.asfortranarray(packed)
    kept = packed.copy()
    packed.flags.writeable = False
    result = compiled(backend, overwrite=True)(packed, pivots)
    np.testing.assert_allclose(result, by_getri(matrix), atol=1e-9)
    np.testing.assert_array_equal(packed, kept)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_has_no_inverse_is_nan(backend):
    n = ENOUGH[backend]
    f = compiled(backend)
    packed, pivots = scipy.linalg.lu_factor(indefinite(n))
    singular = packed.copy()
    singular[n // 2, n // 2] = 0
    assert np.isnan(f(singular, pivots)).all()
    assert np.isnan(f(np.full((n, n), np.nan), pivots)).all()


@pytest.mark.parametrize("mode", ["NUMBA", "CVM"])
def test_it_fails_as_an_inverse_does(mode):
    a = pt.dmatrix("a")
    f = pytensor.function([a], lu_inverse(*lu_factor(a), a, symmetric=True), mode=mode)
    n = ENOUGH[mode]
    np.testing.assert_allclose(f(indefinite(n)), np.linalg.inv(indefinite(n)), atol=1e-9)
    with pytest.raises(np.linalg.LinAlgError):
        f(np.zeros((n, n)))


@pytest.mark.parametrize("mode", ["NUMBA", "CVM"])
def test_passes_keep_that_it_is_symmetric(mode):
    a = pt.dmatrix("a")
    f = pytensor.function([a], lu_inverse(*lu_factor(a), symmetric=True), mode=mode)
    [op] = [node.op for node in f.maker.fgraph.apply_nodes if isinstance(node.op, LUInverse)]
    assert op.overwrite_a
    assert op.symmetric


def test_batches():
    a = pt.tensor3("a")
    f = pytensor.function([a], lu_inverse(*lu_factor(a), symmetric=True), mode="CVM")
    matrices = np.stack([indefinite(4, seed=seed) for seed in range(3)])
    np.testing.assert_allclose(f(matrices), np.linalg.inv(matrices))


def test_numba_tells_it_from_that_of_any_matrix():
    keys = set()
    for symmetric in (False, True):
        node = LUInverse(symmetric=symmetric)(pt.matrix(), pt.ivector()).owner
        _, key = numba_funcify_and_cache_key(node.op, node=node)
        keys.add(key)
    assert None not in keys
    assert len(keys) == 2
