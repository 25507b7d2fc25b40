"""Matrix products: of arguments, and of constants."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from pytensor.tensor.blas import BatchedDot

import pytensor_fuse
from pytensor_fuse._native.lowering.graph import lower_graph
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.passes.fusion import fused
from pytensor_fuse._native.passes.rewrite import rewritten
from pytensor_fuse._native.program.model import For
from pytensor_fuse._native.program.text import print_program
from pytensor_fuse._native.runtime.compiling import compile_program
from pytensor_fuse._pytensor.compat.versions import PRODUCT_MISMATCH
from support.native.functions import kind, native_function, stock_function
from support.native.lowering import check_failure, raw_graph, rewritten_graph, run
from support.native.ways import check_ways

RNG = np.random.default_rng(5)


def matrix(*shape, dtype="float64"):
    return RNG.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(50, 8), (8, 50), (1, 30), (30, 1), (16, 17), (3, 3), (0, 4)])
def test_products_with_vectors(shape, dtype):
    data = matrix(*shape, dtype=dtype)
    right, left = kind(dtype, shape[1])("right"), kind(dtype, shape[0])("left")
    outputs = [pt.dot(data, right), pt.dot(left, data), pt.dot(data.T, left)]
    values = matrix(shape[1], dtype=dtype), matrix(shape[0], dtype=dtype)
    found = native_function([right, left], outputs)(*values)
    expected = stock_function([right, left], outputs)(*values)
    rtol = 1e-13 if dtype == "float64" else 1e-5
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


def test_a_regression_reads_its_data_once():
    data, observed = matrix(500, 8), matrix(500)
    beta = pt.tensor("beta", dtype="float64", shape=(8,))
    density = -pt.log1p((observed - pt.dot(data, beta)) ** 2).sum()
    outputs = [density, pytensor.grad(density, beta)]
    function, value = native_function([beta], outputs), matrix(8)
    for one, other in zip(function(value), stock_function([beta], outputs)(value), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    rows = [loop for loop in pytensor_fuse.explain(function, "native").loops if loop.extent == 500]
    assert [loop.n_reductions for loop in rows] == [9]
    # The matrix and its transpose are the same buffers.
    assert len(rows[0].reads) == 9


def drawn_matrix(data, name, dtype, shape, *, is_finite=True):
    """Draw a matrix in one of several memory layouts: the variable, an input, and its value."""
    rng = np.random.default_rng(data.draw(st.integers(0, 9), label=f"seed of {name}"))
    value = (rng.normal(size=shape) * 3).astype(dtype)
    if not is_finite and value.size:
        for number in (np.nan, np.inf, -np.inf, 0.0, -0.0):
            if data.draw(st.booleans()):
                value.flat[rng.integers(value.size)] = number
    way = data.draw(st.sampled_from(["as it is", "transposed", "every other", "behind an axis"]))
    if way == "transposed":
        whole = np.ascontiguousarray(value.T)
    elif way == "every other":
        whole = np.zeros((2 * shape[0], 2 * shape[1]), dtype)
        whole[::2, ::2] = value
    elif way == "behind an axis":
        whole = np.stack([value + 1, value])
    else:
        whole = value
    known = [data.draw(st.sampled_from([None, length])) for length in whole.shape]
    given = pt.tensor(name, dtype=dtype, shape=tuple(known))
    became = {
        "as it is": lambda: given,
        "transposed": lambda: given.T,
        "every other": lambda: given[::2, ::2],
        "behind an axis": lambda: given[1],
    }
    return became[way](), given, whole


SIZES = st.sampled_from([0, 1, 2, 3, 5, 20])
FLOATS = ("float64", "float32")
ALL = (*FLOATS, "int64", "int32", "int8", "uint8")


@hypothesis.given(st.tuples(SIZES, SIZES, SIZES), st.data())
def test_products_of_matrices(sizes, data):
    (m, k, n), reassociates = sizes, data.draw(st.booleans())
    dtypes = [data.draw(st.sampled_from(ALL)) for _ in range(2)]
    left, x, x_value = drawn_matrix(data, "x", dtypes[0], (m, k))
    right, y, y_value = drawn_matrix(data, "y", dtypes[1], (k, n))
    product = pt.dot(left, right)
    outputs = [product, product + 1, pt.dot(right.T, left.T), (product * 2).sum(axis=0)]
    rtol = {"float64": 1e-12, "float32": 1e-4}.get(product.dtype, 0)
    check_ways(
        [x, y],
        outputs,
        [x_value, y_value],
        rtol=rtol,
        forms=["raw"],
        reassociates=reassociates,
    )


@hypothesis.given(SIZES, SIZES, st.data())
def test_products_with_vectors_that_come_with_the_call(m, k, data):
    dtype = data.draw(st.sampled_from(FLOATS))
    left, x, x_value = drawn_matrix(data, "x", dtype, (m, k), is_finite=False)
    known = data.draw(st.booleans())
    right, of_rows = (
        pt.tensor(name, dtype=dtype, shape=(length if known else None,))
        for name, length in (("right", k), ("of_rows", m))
    )
    # Zero times infinity is NaN in every implementation.
    values = [np.resize(np.array([0, 1, -2, 3], dtype), length) for length in (k, m)]
    product = pt.dot(left, right)
    residuals = of_rows - product
    outputs = [product, pt.dot(left.T, residuals), pt.dot(of_rows, product), pt.outer(right, right)]
    check_ways(
        [x, right, of_rows],
        outputs,
        [x_value, *values],
        rtol=1e-12 if dtype == "float64" else 1e-4,
        reassociates=data.draw(st.booleans()),
        forms=["rewritten"],
    )


def text_of(inputs, outputs):
    fgraph = raw_graph(inputs, outputs)
    lowered = lower_graph(fgraph.inputs, fgraph.outputs, fgraph.toposort(), reassociates=True)
    return print_program(lowered.program)


@pytest.mark.parametrize("flags", ["nn", "nt", "tn", "tt"])
def test_transposes_are_read_where_they_are(flags):
    x, y = pt.matrices("xy")
    left, right = (one.T if flag == "t" else one for one, flag in zip((x, y), flags, strict=True))
    program = text_of([x, y], [pt.dot(left, right)])
    assert program.count(f"call matmul_{flags}(") == 1
    assert "  for %" not in program


def test_who_multiplies_tall_matrices_and_vectors():
    """A loop along the rows does if there are few columns, or the matrix is column-major."""
    v, g = pt.vector("v"), pt.vector("g")
    for n_columns, by_rows in ((3, True), (6, True), (7, False), (16, False)):
        x = pt.tensor("x", dtype="float64", shape=(None, n_columns))
        assert (" call " not in text_of([x, v], [pt.dot(x, v)])) == by_rows
        # BLAS computes the product with the transpose alone.
        assert "call matvec_t" in text_of([x, g], [pt.dot(x.T, g)]).replace("add_", "")
        both = text_of([x, v, g], [pt.dot(x.T, g - pt.dot(x, v))])
        assert both.count(" call ") == (0 if by_rows else 2)
        columns = pt.tensor("columns", dtype="float64", shape=(n_columns, None))
        assert " call " not in text_of([columns, v], [pt.dot(columns.T, v)])
        assert " call " not in text_of([columns, g], [pt.dot(columns, g)])
    columns = pt.tensor("columns", dtype="float64", shape=(17, None))
    assert " call " in text_of([columns, g], [pt.dot(columns, g)])


def test_a_regression_on_data_that_come_with_the_call_reads_them_once():
    x = pt.tensor("x", dtype="float64", shape=(None, 4))
    y, beta = pt.vector("y"), pt.vector("beta")
    density = -pt.log1p((y - pt.dot(x, beta)) ** 2).sum()
    outputs = [density, pytensor.grad(density, beta)]
    check_ways([x, y, beta], outputs, [matrix(50, 4), matrix(50), matrix(4)], rtol=1e-11)
    fgraph = rewritten_graph([x, y, beta], outputs)
    lowered = lower_graph(fgraph.inputs, fgraph.outputs, fgraph.toposort(), reassociates=True)
    loops = [one for one in fused(rewritten(lowered.program)).body if isinstance(one, For)]
    assert [len(loop.reductions) for loop in loops if len(loop.reductions)] == [5]


def test_sizes_that_do_not_fit():
    x, y, v = pt.matrix("x"), pt.matrix("y"), pt.vector("v")
    known = pt.tensor("known", dtype="float64", shape=(None, 3))
    for inputs, shapes in (
        ([x, y], [(2, 3), (4, 5)]),
        ([x, y], [(2, 0), (4, 5)]),
        ([x, v], [(2, 3), (4,)]),
        ([known, v], [(2, 3), (4,)]),
        ([v, y], [(3,), (4, 5)]),
        ([v, v.type("w")], [(3,), (4,)]),
    ):
        outputs, values = [pt.dot(*inputs)], [np.ones(shape) for shape in shapes]
        check_failure(inputs, outputs, values, ValueError, PRODUCT_MISMATCH)


@hypothesis.given(st.sampled_from([0, 1, 3]), st.tuples(SIZES, SIZES, SIZES), st.data())
def test_batched_products(b, sizes, data):
    (m, k, n), dtype = sizes, data.draw(st.sampled_from([*FLOATS, "int64"]))
    known = [b if data.draw(st.booleans()) else None, *[None] * 2]
    x, y = (pt.tensor(name, dtype=dtype, shape=tuple(known)) for name in "xy")
    values = [(matrix(*shape) * 3).astype(dtype) for shape in ((b, m, k), (b, n, k))]
    outputs = [BatchedDot()(x, y.mT), BatchedDot()(y, x.mT).sum(axis=(1, 2))]
    rtol = {"float64": 1e-11, "float32": 1e-4}.get(dtype, 0)
    check_ways([x, y], outputs, values, rtol=rtol, forms=["raw"])


def test_batches_of_products_that_do_not_fit():
    x, y = pt.tensor3("x"), pt.tensor3("y")
    outputs = [BatchedDot()(x, y)]
    message = "Inputs must have the same size in axis 0, but have sizes [2, 3]."
    values = [np.ones((2, 3, 4)), np.ones((3, 4, 5))]
    check_failure([x, y], outputs, values, TypeError, message)
    values = [np.ones((2, 3, 4)), np.ones((2, 3, 5))]
    check_failure([x, y], outputs, values, ValueError, PRODUCT_MISMATCH)


def test_sums_of_products_over_any_axes():
    x, y, z = pt.tensor3("x"), pt.tensor3("y"), pt.matrix("z")
    outputs = [
        pt.tensordot(x, y, axes=[[1], [0]]),
        pt.einsum("bij,bik->bjk", x, y.transpose(1, 0, 2)),
        pt.einsum("ij,jk,kl->il", z, z.T, z),
        pt.einsum("bij,bij->b", x, x),
        pt.vecdot(z, z),
        pt.matvec(x, z[:, :4]),
        pt.vecmat(z[:, :3], x),
    ]
    values = [matrix(2, 3, 4), matrix(3, 2, 5), matrix(2, 6)]
    check_ways([x, y, z], outputs, values, rtol=1e-11, forms=["rewritten"])
    fgraph = rewritten_graph([x, y, z], outputs)
    # Rewriting replaces the other BLAS ops.
    ops = {type(node.op).__name__ for node in fgraph.toposort()}
    assert not ops & {"Gemm", "Gemv", "Ger", "Dot22", "Dot22Scalar", "CGemv", "CGer"}


def test_products_of_complex_numbers_are_left_to_numba():
    x = pt.matrix("x", dtype="complex128")
    assert lower.refusal(pt.dot(x, x).owner) == "no dtype complex128"


def test_the_order_of_sums_is_left_to_blas_without_fastmath():
    beta = pt.tensor("beta", dtype="float64", shape=(8,))
    with pytensor.config.change_flags(numba__fastmath=False):
        function = native_function([beta], [pt.exp(pt.dot(matrix(50, 8), beta))])
    assert "call matvec_n" in pytensor_fuse.explain(function, "native").text


def test_sums_of_negative_zeros_are_zeros():
    data = np.zeros((3, 2))
    data[0, 0] = 1
    beta = pt.tensor("beta", dtype="float64", shape=(2,))
    [found] = native_function([beta], [1 / pt.dot(data, beta)])(np.array([-1.0, -2.0]))
    assert found.tolist() == [-1, np.inf, np.inf]


def test_data_are_kept_once():
    data = matrix(1000, 8)
    beta = pt.tensor("beta", dtype="float64", shape=(8,))
    density = -((pt.dot(data, beta) ** 2).sum())
    inputs, outputs = [beta], [density, pytensor.grad(density, beta)]
    fgraph = pytensor.graph.fg.FunctionGraph(inputs, outputs, clone=True)
    pytensor.compile.mode.NUMBA.optimizer.rewrite(fgraph)
    lowered = lower_graph(fgraph.inputs, fgraph.outputs, fgraph.toposort(), reassociates=True)
    made = compile_program(lowered.program, lowered.constants, since=0.0)
    assert sum(one.nbytes for one in lowered.constants) >= 3 * data.nbytes
    assert sum(one.nbytes for one in made.constants) < 1.1 * data.nbytes


@pytest.mark.parametrize("along", [1, 2, None])
def test_products_of_negative_zeros_are_zero(along):
    x, y = kind("float64", None, along)("x"), kind("float64", along, None)("y")
    values = -np.ones((2, along or 1)), np.zeros((along or 1, 3))
    # Not rewritten: rewriting replaces sums of one term by an elementwise product.
    [found] = run(raw_graph([x, y], [pt.dot(x, y)]), values)
    assert not np.signbit(found).any()


def test_masks_are_factors():
    mask, y = pt.matrix("mask", dtype="bool"), pt.matrix("y")
    values = np.random.default_rng(2).random((4, 3)) < 0.5, matrix(3, 2)
    found = native_function([mask, y], pt.dot(mask, y))(*values)
    np.testing.assert_allclose(found, values[0] @ values[1])
