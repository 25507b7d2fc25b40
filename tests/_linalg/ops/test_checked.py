"""Inverses from factors, with the matrix beside them: what `MatrixInverse` does where they fail."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.linalg import cholesky, lu_factor

from pytensor_fuse._linalg.ops.cholesky_inverse import CholeskyInverse, cholesky_inverse
from pytensor_fuse._linalg.ops.lu_inverse import LUInverse, lu_inverse
from support.linalg.structures import BACKENDS, as_it_is, positive_definite

A = pt.matrix("a")
CORNER = np.triu(np.ones((3, 3)))
CORNER[0, 2] = np.nan


def compiled(backend, inverse):
    return pytensor.function([A], inverse, mode=as_it_is(backend))


@pytest.mark.parametrize("backend", BACKENDS)
def test_lu(backend):
    f = compiled(backend, lu_inverse(*lu_factor(A), A))
    matrix = np.array([[0.0, 2, 1], [3, 1, 0], [1, 1, 1]])
    np.testing.assert_allclose(f(matrix), np.linalg.inv(matrix))
    with pytest.raises(np.linalg.LinAlgError, match=r"[sS]ingular"):
        f(np.ones((3, 3)))
    for unknown in np.full((3, 3), np.nan), CORNER:
        if backend == "NUMBA":
            with pytest.raises(np.linalg.LinAlgError, match="must not contain"):
                f(unknown)
        else:
            assert np.isnan(f(unknown)).any()
    assert f(np.empty((0, 0))).shape == (0, 0)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("backend", BACKENDS)
def test_cholesky(backend, lower):
    f = compiled(backend, cholesky_inverse(cholesky(A, lower=lower), A, lower=lower))
    indefinite = np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]])
    for matrix in positive_definite(3), indefinite:
        np.testing.assert_allclose(f(matrix), np.linalg.inv(matrix), atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match=r"[sS]ingular"):
        f(np.ones((3, 3)))
    assert f(np.empty((0, 0))).shape == (0, 0)


@pytest.mark.parametrize("make", [LUInverse, CholeskyInverse])
def test_the_matrix_is_an_input_if_it_is_wanted(make):
    factors = [A, pt.ivector()] if make is LUInverse else [A]
    with pytest.raises(TypeError, match="the matrix itself is an input"):
        make(checked=True)(*factors)
    with pytest.raises(TypeError, match="the matrix itself is not an input"):
        make()(*factors, A)
    for other in pt.fmatrix(), pt.tensor3():
        with pytest.raises(TypeError, match="as its factor is"):
            make(checked=True)(*factors, other)


def test_in_place_it_is_checked_still():
    for op in LUInverse(checked=True), CholeskyInverse(checked=True, lower=False):
        in_place = op.inplace_on_inputs([0])
        assert in_place != op
        assert in_place.destroy_map == {0: [0]}
        assert {**in_place._props_dict(), "overwrite_a": False} == op._props_dict()
        assert op.inplace_on_inputs([]) is op
