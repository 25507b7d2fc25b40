"""Functions that take and return sparse matrices: machine code gets their parts."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.sparse as ps
import pytensor.tensor as pt
import pytest
import scipy.sparse
from pytensor.compile.builders import OpFromGraph
from pytensor.sparse import math
from pytensor.sparse.basic import as_sparse_variable
from pytensor.sparse.type import SparseTensorType

from pytensor_fuse import explain
from pytensor_fuse._native.linking.parts import ThunkOfParts
from pytensor_fuse._native.linking.thunks import NativeThunk
from pytensor_fuse._native.linking.verification import difference
from pytensor_fuse.exceptions import NativeLinkError
from pytensor_fuse.native import compile_c
from support.native.lowering import PYTHON
from support.native.sparse_matrices import CLASSES, FORMATS, of_parts, random_matrix

each_format = pytest.mark.parametrize("storage", FORMATS)


def function(*args, **kwargs):
    made = pytensor.function(*args, mode="NUMBA", **kwargs)
    assert type(made.vm) is ThunkOfParts
    return made


def require_same_matrix(one, other):
    """Require that two matrices have the same parts."""
    assert type(one) is type(other)
    assert one.shape == other.shape
    for name in ("data", "indices", "indptr"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert mine.dtype == theirs.dtype
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
@each_format
def test_arguments_and_results(storage, dtype):
    x = SparseTensorType(storage, dtype)("x")
    outputs = [x, x.T, math.add_s_s(x, x), ps.sp_sum(x, 1)]
    f = function([x], outputs)
    oracle = pytensor.function([x], outputs, mode=PYTHON)
    given = random_matrix(storage, (4, 3), dtype=dtype)
    kept = given.copy()
    *found, total = f(given)
    *expected, expected_total = oracle(given)
    for one, other in zip(found, expected, strict=True):
        require_same_matrix(one, other)
        assert not np.shares_memory(one.data, given.data)
    np.testing.assert_allclose(total, expected_total, rtol=1e-6)
    require_same_matrix(given, kept)


@each_format
def test_other_matrices_in_each_call(storage):
    x, b = SparseTensorType(storage, "float64")("x"), pt.vector("b")
    f = function([x, b], ps.dot(x, b))
    for shape in ((3, 4), (0, 4), (5, 0), (1, 1)):
        given = random_matrix(storage, shape)
        values = np.arange(float(shape[1]))
        np.testing.assert_allclose(f(given, values), given @ values, rtol=1e-13)


def test_shared_matrices_and_updates():
    x = pytensor.shared(random_matrix("csr", (3, 3)))
    f = function([], ps.sp_sum(x), updates={x: math.mul_s_d(x, pt.constant(2.0))})
    first = f()
    np.testing.assert_allclose(f(), 2 * first)
    np.testing.assert_allclose(x.get_value().sum(), 4 * first)
    x.set_value(random_matrix("csr", (5, 2)))
    np.testing.assert_allclose(f(), random_matrix("csr", (5, 2)).sum())


def test_a_constant_alone_needs_no_parts():
    b = pt.vector("b")
    x = random_matrix("csr", (3, 4))
    f = pytensor.function([b], ps.dot(as_sparse_variable(x), b), mode="NUMBA")
    assert type(f.vm) is NativeThunk
    np.testing.assert_allclose(f(np.ones(4)), x @ np.ones(4))


def test_indices_of_64_bits():
    x, b = ps.csr_matrix("x"), pt.vector("b")
    f = function([x, b], ps.dot(x, b))
    given = random_matrix("csr", (3, 4))
    expected = given @ np.ones(4)
    given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    np.testing.assert_allclose(f(given, np.ones(4)), expected)
    given.indices[0] = 1 << 40
    with pytest.raises(OverflowError, match="beyond 32 bits"):
        f(given, np.ones(4))


@each_format
def test_room_for_more_entries(storage):
    x, b = SparseTensorType(storage, "float64")("x"), pt.vector("b")
    f = function([x, b], [ps.dot(x, b), math.add_s_s(x, x)])
    given = random_matrix(storage, (4, 4))
    values = np.arange(4.0)
    product, total = given @ values, (given + given).toarray()
    given.data = np.append(given.data, [np.nan, 1.0])
    given.indices = np.append(given.indices, [-5, 99]).astype(np.int32)
    found, added = f(given, values)
    np.testing.assert_allclose(found, product)
    assert np.array_equal(added.toarray(), total)
    assert added.nnz == given.nnz


@pytest.mark.parametrize("bad", [-1, 4, 2**31 - 1])
@each_format
def test_an_index_out_of_bounds_is_an_error(storage, bad):
    x, b = SparseTensorType(storage, "float64")("x"), pt.vector("b")
    f = function([x, b], [ps.dot(x, b), ps.dense_from_sparse(x)])
    given = random_matrix(storage, (4, 4))
    given.indices[-1] = bad
    with pytest.raises(IndexError, match="index is out of bounds"):
        f(given, np.ones(4))


def test_bounds_that_are_out_of_order_are_an_error():
    x, b = ps.csr_matrix("x"), pt.vector("b")
    f = function([x, b], ps.dot(x, b))
    given = random_matrix("csr", (4, 4))
    given.indptr[2] = 1 << 30
    with pytest.raises(ValueError, match="the indptr of a sparse matrix"):
        f(given, np.ones(4))


def test_a_format_that_has_no_machine_code():
    x = SparseTensorType("bsr", "float64")("x")
    y = ps.csr_matrix("y")
    with pytest.raises(NativeLinkError, match="a variable of type"):
        pytensor.function([x, y], [x, ps.sp_sum(y)], mode="NATIVE", on_unused_input="ignore")


def test_steps_of_a_scan_read_a_matrix():
    x, b = ps.csr_matrix("x"), pt.vector("b")
    states = pytensor.scan(
        lambda state, given: ps.dot(given, state) * 0.5,
        outputs_info=[b],
        non_sequences=[x],
        n_steps=3,
        return_updates=False,
    )
    f = function([x, b], states[-1])
    given, values = random_matrix("csr", (4, 4)), np.arange(4.0)
    expected = given @ (given @ (given @ values * 0.5) * 0.5) * 0.5
    np.testing.assert_allclose(f(given, values), expected, rtol=1e-12)


def test_inner_graphs_take_and_return_matrices():
    x = ps.csr_matrix("x")
    twice = OpFromGraph([x], [math.add_s_s(x, x)])
    given = random_matrix("csr", (4, 3))
    found = function([x], twice(x))(given)
    require_same_matrix(found, (given + given).tocsr())


def test_what_c_calls_takes_no_matrix():
    x = ps.csr_matrix("x")
    with pytest.raises(NativeLinkError):
        compile_c(function([x], ps.sp_sum(x)))


def test_parts_have_the_name_of_their_variable():
    x, b = ps.csr_matrix("x"), pt.vector("b")
    [region] = explain(function([x, b], ps.dot(x, b)), "native").regions
    names = [one.name.partition(" ")[2] for one in region.buffers]
    assert names.count("x") == 4


def test_matrices_are_compared_in_mode_verify():
    one, other = random_matrix("csr", (3, 3)), random_matrix("csr", (3, 3))
    assert difference(one, other) is None
    other.data[0] += 1
    assert difference(one, other).startswith("has data that differs from Numba's in 1 of")
    assert "shape" in difference(one, random_matrix("csr", (3, 4)))


def test_results_are_of_the_class_that_the_format_says():
    d = pt.matrix("d")
    outputs = [ps.csr_from_dense(d), ps.csc_from_dense(d)]
    f = function([d], outputs)
    found = f(np.eye(3))
    assert [type(one) for one in found] == [CLASSES["csr"], CLASSES["csc"]]
    assert not any(isinstance(one, scipy.sparse.sparray) for one in found)
    expected = of_parts("csr", np.ones(3), range(3), range(4), (3, 3))
    require_same_matrix(found[0], expected)
