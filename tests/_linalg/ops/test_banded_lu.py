"""The LU factorization of a band, and solves with it: values, layouts, what fails, batches."""

import pickle
from functools import cache

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key
from pytensor.tensor.blockwise import Blockwise

from pytensor_fuse._linalg.ops.banded_lu import (
    WRONG_BAND,
    WRONG_FACTORS,
    WRONG_PIVOTS_OF_BAND,
    LUFactorBanded,
    SolveLUFactorBanded,
    banded_lu_factor,
    rows_of_storage,
)
from support.effort import IS_DEEP
from support.linalg.rules import PYTHON
from support.linalg.structures import BACKENDS, LAYOUTS, as_it_is

TOLERANCE = {"float64": 1e-9, "float32": 1e-2}
BELOW, ABOVE = 3, 2
# With so many LAPACK works by blocks.
BLOCKED = 70, 40


def band_and_whole(n, below=BELOW, above=ABOVE, dtype="float64", seed=0):
    """Return the storage of a band, and the matrix; what is outside of both is a number, too."""
    rng = np.random.default_rng(seed)
    band = rng.normal(size=(rows_of_storage(below, above), n)).astype(dtype)
    whole = np.zeros((n, n), dtype)
    for i in range(n):
        for j in range(max(0, i - below), min(n, i + above + 1)):
            whole[i, j] = band[below + above + i - j, j]
    return band, whole


@cache
def compiled(backend, below=BELOW, above=ABOVE, dtype="float64"):
    """Return the function that factorizes, solves for a vector, and by the transpose for columns.

    It is one, as Numba takes seconds for each.
    """
    band, packed, columns = (pt.matrix(name, dtype=dtype) for name in ("band", "packed", "columns"))
    pivots, vector = pt.ivector("pivots"), pt.vector("vector", dtype=dtype)
    return pytensor.function(
        [band, packed, pivots, vector, columns],
        [
            *LUFactorBanded(below, above)(band),
            SolveLUFactorBanded(below, above, b_ndim=1)(packed, pivots, vector),
            SolveLUFactorBanded(below, above, b_ndim=2, transposed=True)(packed, pivots, columns),
        ],
        mode=as_it_is(backend),
    )


def factorized(band, below=BELOW, above=ABOVE):
    """Return what LAPACK gives, for which SciPy wants a row at least."""
    if not band.shape[1]:
        return band, np.empty(0, "int32")
    [gbtrf] = scipy.linalg.get_lapack_funcs(["gbtrf"], dtype=band.dtype)
    packed, pivots, _ = gbtrf(band, below, above)
    return np.ascontiguousarray(packed), pivots


def kinds():
    """Find backends with layouts, for each of which Numba compiles anew."""
    for backend in BACKENDS:
        for layout in ["rows", "neither"] if backend == "NUMBA" else LAYOUTS:
            yield backend, layout, "float64"
        if backend != "NUMBA" or IS_DEEP:
            yield backend, "rows", "float32"


@pytest.mark.parametrize(("backend", "layout", "dtype"), list(kinds()))
def test_values(backend, layout, dtype):
    function, lay_out = compiled(backend, dtype=dtype), LAYOUTS[layout]
    # Of one element, an array is of any layout.
    for n in (5, 40) if layout == "neither" else (0, 1, 2, 5, 40):
        band, whole = band_and_whole(n, dtype=dtype)
        packed, pivots = factorized(band)
        right = np.ones((n, 3), dtype)
        given = lay_out(band), lay_out(packed), pivots, lay_out(right)[:, 0], lay_out(right)
        before = [one.copy() for one in given]
        found_packed, found_pivots, vector, columns = function(*given)
        for one, other in zip(given, before, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(found_packed, packed)
        np.testing.assert_array_equal(found_pivots, pivots)
        assert {found_packed.dtype, vector.dtype, columns.dtype} == {np.dtype(dtype)}
        assert found_pivots.dtype == "int32"
        for residual, size in (
            (whole @ vector - 1, np.abs(vector).max(initial=0)),
            (whole.T @ columns - 1, np.abs(columns).max(initial=0)),
        ):
            assert np.abs(residual).max(initial=0) <= TOLERANCE[dtype] * (1 + size)


@pytest.mark.parametrize(("below", "above"), [(0, 0), (0, 2), (2, 0), BLOCKED])
def test_any_numbers_of_diagonals(below, above):
    function = compiled("py", below, above)
    for n in (0, 1, 3, 60, 130):
        band, whole = band_and_whole(n, below, above)
        band[below + above] += 9
        whole += 9 * np.eye(n)
        packed, pivots = factorized(band, below, above)
        found, _, vector, columns = function(band, packed, pivots, np.ones(n), np.ones((n, 0)))
        np.testing.assert_array_equal(found, packed)
        np.testing.assert_allclose(vector, np.linalg.solve(whole, np.ones(n)), rtol=1e-8)
        assert columns.shape == (n, 0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_fails(backend):
    function = compiled(backend)
    band, _ = band_and_whole(6)
    packed, pivots = factorized(band)
    right = [band, packed, pivots, np.ones(6), np.ones((6, 2))]
    for wrong in (0, 1):
        with pytest.raises(ValueError, match=WRONG_BAND):
            function(*(one[1:] if i == wrong else one for i, one in enumerate(right)))
    for wrong in (2, 3, 4):
        with pytest.raises(ValueError, match=WRONG_FACTORS):
            function(*(one[1:] if i == wrong else one for i, one in enumerate(right)))
    with pytest.raises(ValueError, match=WRONG_FACTORS):
        function(band, np.ascontiguousarray(packed[:, 1:]), *right[2:])
    for wrong in (6, -1):
        spoilt = pivots.copy()
        spoilt[2] = wrong
        with pytest.raises(ValueError, match=WRONG_PIVOTS_OF_BAND):
            function(band, packed, spoilt, *right[3:])


@pytest.mark.parametrize("backend", BACKENDS)
def test_singular_and_not_finite(backend):
    function = compiled(backend)
    band, _ = band_and_whole(6)
    packed, pivots = factorized(band)
    zero = np.zeros_like(band)
    band[-1, 0] = np.nan
    for number in (0.0, 1.0):
        right = np.full(6, number), np.full((6, 2), number)
        found, _, *solutions = function(zero, zero, pivots, *right)
        assert not found[BELOW + ABOVE].any()
        assert all(np.isnan(one).all() for one in solutions)
        for spoilt in (np.nan, np.inf):
            packed[BELOW + ABOVE, 3] = spoilt
            found, _, *solutions = function(band, packed, pivots, *right)
            assert np.isnan(found).all()
            assert np.isinf(spoilt) or all(np.isnan(one).all() for one in solutions)


def test_what_is_no_band():
    with pytest.raises(ValueError, match="must not be negative"):
        LUFactorBanded(-1, 2)
    with pytest.raises(ValueError, match="dimensions"):
        SolveLUFactorBanded(1, 2, b_ndim=3)
    for wrong in (pt.vector(), pt.lmatrix(), pt.tensor3()):
        with pytest.raises(TypeError, match="the band"):
            LUFactorBanded(1, 1)(wrong)
    with pytest.raises(ValueError, match=WRONG_BAND):
        LUFactorBanded(1, 1)(pt.matrix(shape=(3, None)))
    solve = SolveLUFactorBanded(1, 1, b_ndim=1)
    for right, pivots in ((pt.matrix(), pt.ivector()), (pt.fvector(), pt.ivector())):
        with pytest.raises(TypeError, match="right-hand side"):
            solve(pt.dmatrix(), pivots, right)
    with pytest.raises(TypeError, match="pivots"):
        solve(pt.dmatrix(), pt.dvector(), pt.dvector())


def test_batches():
    bands, rights = pt.tensor3("bands"), pt.matrix("rights")
    factors = banded_lu_factor(bands, BELOW, ABOVE)
    stacked, wholes = (np.stack(one) for one in zip(*map(band_and_whole, (5, 5)), strict=True))
    packed, pivots = (pt.tensor3(), pt.imatrix())
    solution = Blockwise(SolveLUFactorBanded(BELOW, ABOVE, b_ndim=1))(packed, pivots, rights)
    function = pytensor.function([packed, pivots, rights], solution, mode=PYTHON)
    made = pytensor.function([bands], factors, mode=PYTHON)(stacked)
    found = function(*made, np.ones((2, 5)))
    np.testing.assert_allclose(wholes @ found[:, :, None], np.ones((2, 5, 1)), rtol=1e-9)


def test_ops_are_equal_by_what_they_do():
    one, same = SolveLUFactorBanded(1, 2, b_ndim=1), SolveLUFactorBanded(1, 2, b_ndim=1)
    others = [
        SolveLUFactorBanded(2, 1, b_ndim=1),
        SolveLUFactorBanded(1, 2, b_ndim=2),
        SolveLUFactorBanded(1, 2, b_ndim=1, transposed=True),
        LUFactorBanded(1, 2),
    ]
    assert one == same == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(same)
    assert not any(one == other for other in others)


def test_numba_can_store_what_it_compiles():
    for op, inputs in (
        (LUFactorBanded(1, 2), [pt.dmatrix()]),
        (SolveLUFactorBanded(1, 2, b_ndim=2), [pt.dmatrix(), pt.ivector(), pt.dmatrix()]),
    ):
        _, key = numba_funcify_and_cache_key(op, node=op.make_node(*inputs))
        assert key is not None
