"""The inverse from LU factors: values, memory, what fails."""

import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key
from pytensor.tensor.linalg import lu_factor
from pytensor.tensor.linalg.decomposition.lu import LUFactor

from pytensor_fuse._linalg.ops.lu_inverse import WRONG_PIVOTS, LUInverse, lu_inverse
from support.linalg.structures import BACKENDS, KINDS, LAYOUTS, as_it_is, general

TOLERANCE = {"float64": 1e-11, "float32": 1e-3}


def compiled(backend, dtype="float64", pivots_dtype="int32", overwrite=False):
    packed, pivots = pt.matrix("packed", dtype=dtype), pt.vector("pivots", dtype=pivots_dtype)
    return pytensor.function(
        [pytensor.In(packed, mutable=True, borrow=True), pivots],
        LUInverse(overwrite_a=overwrite)(packed, pivots),
        mode=as_it_is(backend),
        accept_inplace=True,
    )


@pytest.mark.parametrize(("backend", "overwrite", "dtype"), KINDS)
def test_values_for_each_layout(backend, overwrite, dtype):
    f = compiled(backend, dtype, overwrite=overwrite)
    for n in (1, 2, 31, 70, 130):
        a = general(n, dtype=dtype)
        packed, pivots = scipy.linalg.lu_factor(a)
        for lay_out in LAYOUTS.values():
            given, given_pivots = lay_out(packed.copy()), pivots.copy()
            result = f(given, given_pivots)
            assert result.dtype == dtype
            np.testing.assert_allclose(result, np.linalg.inv(a), atol=TOLERANCE[dtype] * 10)
            np.testing.assert_array_equal(given_pivots, pivots)
            if not overwrite:
                np.testing.assert_array_equal(given, packed)
    assert f(np.empty((0, 0), dtype), np.empty(0, "int32")).shape == (0, 0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_takes_over_memory_if_it_may(backend):
    packed, pivots = scipy.linalg.lu_factor(general(40))
    packed = np.asfortranarray(packed)
    assert np.shares_memory(compiled(backend, overwrite=True)(packed, pivots), packed)


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_never_writes_over_what_must_not_be_written(backend):
    packed, pivots = scipy.linalg.lu_factor(general(5))
    packed = np.asfortranarray(packed)
    kept = packed.copy()
    packed.flags.writeable = False
    result = compiled(backend, overwrite=True)(packed, pivots)
    np.testing.assert_allclose(result, np.linalg.inv(general(5)))
    np.testing.assert_array_equal(packed, kept)


@pytest.mark.parametrize("mode", ["NUMBA", "CVM"])
def test_passes_let_it_write_over_factors_that_nothing_else_reads(mode):
    a = pt.matrix("a")
    packed, pivots = lu_factor(a)
    f = pytensor.function([a], lu_inverse(packed, pivots), mode=mode)
    g = pytensor.function([a], [packed, lu_inverse(packed, pivots)], mode=mode)
    for function, overwrites in ((f, True), (g, False)):
        [op] = [
            node.op for node in function.maker.fgraph.apply_nodes if isinstance(node.op, LUInverse)
        ]
        assert op.overwrite_a is overwrites
    value = general(20)
    np.testing.assert_allclose(f(value), np.linalg.inv(value))
    np.testing.assert_allclose(g(value)[1], np.linalg.inv(value))


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_has_no_inverse_is_nan(backend):
    a = pt.matrix("a")
    f = pytensor.function([a], LUInverse()(*LUFactor()(a)), mode=as_it_is(backend))
    with_nan = general(4)
    with_nan[1, 2] = np.nan
    for matrix in (np.ones((4, 4)), np.zeros((4, 4)), np.full((4, 4), np.nan)):
        assert np.isnan(f(matrix)).all()
    assert np.isnan(f(with_nan)).any()
    # PyTensor's factors are NaN by then; these are not.
    packed = np.triu(np.ones((3, 3)))
    packed[1, 1] = 0
    assert np.isnan(compiled(backend)(packed, np.arange(3, dtype="int32"))).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("pivots", [[0, 1], [0, 1, 3], [0, 1, -1], [0, 1, 2, 2]])
def test_pivots_that_there_are_not(backend, pivots):
    with pytest.raises(ValueError, match=WRONG_PIVOTS):
        compiled(backend)(np.eye(3), np.array(pivots, dtype="int32"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_must_be_square(backend):
    with pytest.raises(np.linalg.LinAlgError, match="must be square"):
        compiled(backend)(np.ones((2, 3)), np.zeros(2, dtype="int32"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_pivots_of_other_integers(backend):
    a = general(9)
    packed, pivots = scipy.linalg.lu_factor(a)
    f = compiled(backend, pivots_dtype="int64")
    np.testing.assert_allclose(f(packed, pivots.astype("int64")), np.linalg.inv(a))


def test_it_takes_real_matrices_and_integers():
    with pytest.raises(TypeError, match="the packed factors must be a matrix of float32"):
        LUInverse()(pt.zmatrix(), pt.ivector())
    for pivots in (pt.vector(), pt.imatrix()):
        with pytest.raises(TypeError, match="the pivots must be a vector of integers"):
            LUInverse()(pt.matrix(), pivots)


@pytest.mark.parametrize("mode", ["NUMBA", "CVM"])
def test_batches(mode):
    a = pt.tensor3("a")
    f = pytensor.function([a], lu_inverse(*lu_factor(a)), mode=mode)
    matrices = np.stack([general(4, seed=seed) for seed in range(3)])
    np.testing.assert_allclose(f(matrices), np.linalg.inv(matrices))


def test_its_shape_is_that_of_the_factors():
    packed, pivots = pt.matrix(), pt.ivector()
    f = pytensor.function(
        [packed, pivots], LUInverse()(packed, pivots).shape, on_unused_input="ignore"
    )
    assert not any(isinstance(node.op, LUInverse) for node in f.maker.fgraph.apply_nodes)
    assert tuple(f(np.eye(3), np.arange(3, dtype="int32"))) == (3, 3)


def test_numba_can_cache_it():
    keys = set()
    for overwrite in (False, True):
        node = LUInverse(overwrite_a=overwrite)(pt.matrix(), pt.ivector()).owner
        _, key = numba_funcify_and_cache_key(node.op, node=node)
        other = pickle.loads(pickle.dumps(node.op))
        assert other == node.op
        assert numba_funcify_and_cache_key(other, node=node)[1] == key
        keys.add(key)
    assert None not in keys
    assert len(keys) == 2
