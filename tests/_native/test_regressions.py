"""Regression tests, one for each fault of machine code."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.io import In
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.raise_op import Assert
from pytensor.tensor.reshape import join_dims

import pytensor_fuse
from pytensor_fuse._native.linking.graphs import lowered_graph
from pytensor_fuse._native.runtime.compiling import optimized
from pytensor_fuse._native.runtime.llvm import host_machine
from pytensor_fuse.exceptions import NativeLinkError
from pytensor_fuse.native import RuleError, lower
from support.native.lowering import rewritten_graph
from support.native.machine import compiled as machine_code_of
from support.native.machine import run_code
from support.switching import switched


def native(inputs, outputs):
    assert pytensor_fuse.status()["native"].is_on
    return pytensor.function(inputs, outputs, mode="NATIVE", on_unused_input="ignore")


def test_alloc_of_another_length_than_its_value_raises():
    x, n = pt.vector("x", shape=(5,)), pt.lscalar("n")
    function = native([x, n], pt.alloc(x, 2, n))
    assert function(np.arange(5.0), 5).shape == (2, 5)
    with pytest.raises(ValueError, match="could not broadcast input array"):
        function(np.arange(5.0), 2)


def test_reshape_to_another_size_raises():
    x, n = pt.vector("x"), pt.lscalar("n")
    function = native([x, n], x.reshape((2, n)))
    assert function(np.arange(4.0), 2).shape == (2, 2)
    with pytest.raises(ValueError, match="total size of new array"):
        function(np.arange(4.0), 3)


def test_cumulative_sums_begin_with_the_sign_of_the_first_element():
    x = pt.vector("x")
    (first, _) = native([x], pt.cumsum(x))(np.array([-0.0, 1.0]))
    assert np.signbit(first)


def test_temporaries_of_no_bytes_may_be_read():
    x, empty = pt.vector("x"), pt.matrix("empty", shape=(0, 3))
    function = native([x, empty], pt.exp(pt.exp(empty)[:, 0][: x.shape[0]]).sum() + x.sum())
    assert function(np.ones(2), np.ones((0, 3))) == 2


def test_two_temporaries_with_lengths_computed_on_the_way():
    x, n, m = pt.vector("x"), pt.lscalar("n"), pt.lscalar("m")
    function = native([x, n, m], pt.cumsum(pt.exp(x[:n])).sum() + pt.cumsum(pt.exp(x[:m])).sum())
    values = np.linspace(0, 1, 9)
    expected = sum(np.cumsum(np.exp(values[:k])).sum() for k in (4, 7))
    np.testing.assert_allclose(function(values, 4, 7), expected)


def test_code_of_an_equal_graph_reads_the_constants_that_are_there_now():
    data = np.arange(3.0)

    def made():
        x = pt.vector("x", shape=(3,))
        return native([x], x * pt.constant(data, name="data"))

    first = made()
    np.testing.assert_array_equal(first(np.ones(3)), [0, 1, 2])
    data[:] = 7
    np.testing.assert_array_equal(made()(np.ones(3)), [7, 7, 7])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_sums_of_few_terms_begin_with_zero(n):
    x = pt.matrix("x", shape=(n, 4))
    with pytensor.config.change_flags(numba__fastmath=False):
        # Not rewritten: PyTensor removes sums along an axis of length 1.
        function = pytensor.function(
            [x], [x.sum(axis=0), x.T.sum(axis=1), x.sum()], mode=Mode("native", None)
        )
    for total in function(np.full((n, 4), -0.0)):
        assert not np.signbit(total).any()


@pytest.mark.parametrize("known", [None, 0])
def test_masks_of_no_elements_select_nothing(known):
    x, mask = pt.matrix("x"), pt.tensor("mask", dtype="bool", shape=(known,))
    # Not rewritten: PyTensor's rewriter does not support such masks.
    function = pytensor.function(
        [x, mask], [x[mask], pt.set_subtensor(x[mask], 5.0)], mode=Mode("native", None)
    )
    given = np.arange(6.0).reshape(3, 2)
    selected, assigned = function(given, np.zeros(0, bool))
    assert selected.shape == (0, 2)
    np.testing.assert_array_equal(assigned, given)
    if known is None:
        np.testing.assert_array_equal(function(given, np.array([True, False, True]))[0], given[::2])
        with pytest.raises(IndexError, match=r"size of axis is 3 but .* boolean axis is 2"):
            function(given, np.zeros(2, bool))


def test_outputs_of_inner_graphs_stay_what_they_were():
    def assigned(v):
        return pt.set_subtensor(v[0], 99.0)

    a, x = pt.vector("a"), pt.vector("x")
    reverse, same = OpFromGraph([a], [a[::-1]]), OpFromGraph([a], [a])
    twice = OpFromGraph([a], [pt.exp(a), pt.exp(a)])
    y = pt.exp(x * 0) + x
    one, other = twice(x)
    outputs = [assigned(y), reverse(y), same(y), assigned(same(y)), y, assigned(one), other]
    given = np.arange(4.0)
    found = native([x], outputs)(given)
    base, exp = given + 1, np.exp(given)
    wanted = [[99, 2, 3, 4], base[::-1], base, [99, 2, 3, 4], base, [99, *exp[1:]], exp]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other)
    mutable = native([In(x, mutable=True)], [assigned(x), reverse(x)])
    np.testing.assert_array_equal(mutable(given.copy())[1], given[::-1])


@pytest.mark.parametrize("text", ["{0} of {1} and {9}", "{{0}} {2}%", "{{{3}}}"])
def test_braces_in_somebodys_message_are_its_own(text):
    x = pt.vector("x")
    function = native([x], Assert(text)(x, pt.all(x > 0)) * 2)
    with pytest.raises(AssertionError) as caught:
        function(-np.ones(2))
    assert str(caught.value).partition("\n")[0] == text
    with pytest.raises(AssertionError) as caught:
        function.vm.jit_fn(-np.ones(2))
    assert str(caught.value) == text


def test_floats_are_divided_to_integers_as_numba_does():
    x, y = pt.vectors("xy")
    values = [(1.0, 0.1), (1.0, 0.2), (6.0, 0.1), (1.5, -np.inf), (np.inf, 0.5), (-7.0, 2.0)]
    given = np.array(values).T
    with pytensor.config.change_flags(numba__fastmath=False):
        function = pytensor.function([x, y], x // y, mode=Mode("native", None))
        with switched(native=False, cache=False):
            stock = pytensor.function([x, y], x // y, mode=Mode("numba", None))
    np.testing.assert_array_equal(function(*given), [10, 5, 60, -0.0, np.inf, -4])
    np.testing.assert_array_equal(function(*given), stock(*given))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
def test_cumulative_sums_of_small_integers_are_left_to_numba(dtype):
    x = pt.vector("x", dtype=dtype)
    with pytest.raises(NativeLinkError, match=f"cumulative sums of {dtype}"):
        native([x], pt.cumsum(x))


def test_a_rule_that_refuses_late_is_named_and_not_warned_of():
    # Older versions compute both sides before they choose.
    conditional = pytest.importorskip("pytensor.conditional.op")
    c, x = pt.bscalar("c"), pt.vector("x")
    out = conditional.ifelse(c, x[x > 0], x)
    with pytest.raises(NativeLinkError, match=r"(?i)ifelse.*one side of a branch"):
        native([c, x], out)
    function = pytensor.function([c, x], out, mode="NUMBA")
    np.testing.assert_array_equal(function(1, np.array([-1.0, 2.0])), [2])
    [refused] = pytensor_fuse.explain(function, "native").not_native
    assert "one side of a branch" in refused.why


class Halved(Op):
    """Half of its input, in single precision."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [pt.vector(dtype="float32")])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = (inputs[0] / 2).astype("float32")


@pytest.mark.parametrize("made", ["f64", "matrix", "two"])
def test_rules_return_what_the_op_declares(made):
    @lower.register(Halved)
    def halved(op, node, context, inputs):
        [x] = inputs
        lengths = (*x.lengths, *x.lengths[: made == "matrix"])
        dtype = "f64" if made == "f64" else "f32"
        out = context.materialized(
            dtype, lengths, lambda index: context.builder.cast(x.at(index[:1]), dtype)
        )
        return [out] * (1 + (made == "two"))

    x = pt.vector("x")
    with pytest.raises(RuleError, match=r"for Halved, .* returns .* for outputs of \[\('f32', 1\)"):
        native([x], Halved()(x))


def test_a_verified_function_is_explained(monkeypatch):
    monkeypatch.setenv("PYTENSOR_FUSE_NATIVE", "verify")
    x = pt.vector("x")
    function = pytensor.function([x], pt.exp(x).sum(), mode="NUMBA")
    found = pytensor_fuse.explain(function, "native")
    assert found.state.name == "WHOLE"
    assert len(found.regions) == 1


def _cumulative_of(x, length, at):
    return pt.cumsum(pt.alloc(pt.cumsum(pt.exp(x))[at], length))[at]


def _negative_lengths():
    x, k, j = pt.vector("x"), pt.lscalar("k"), pt.lscalar("j")
    y = pt.cumsum(pt.exp(x))
    parts = pt.split(y, pt.stack([k, x.shape[0] - k]), n_splits=2)
    return {
        "alloc": ([x, k, j], _cumulative_of(x, k, j), -290),
        "part longer than the array": ([x, k, j], pt.cumsum(parts[1])[0] + 0 * j, 310),
        "rows": ([x, k, j], pt.cumsum(pt.zeros((k, 3)) + y[j], axis=0)[0, 0], -3),
    }


@pytest.mark.parametrize("name", _negative_lengths())
@pytest.mark.parametrize("at_end", [False, True])
def test_negative_lengths_take_no_memory_from_other_temporaries(name, at_end):
    """The check comes after the loops that use the other buffers."""
    inputs, output, k = _negative_lengths()[name]
    fgraph = rewritten_graph(inputs, [output])
    lowered = lowered_graph(fgraph, fgraph.toposort())
    function = machine_code_of(
        optimized(lowered.program, lowered.constants), host_machine(), uses_library=True
    )
    given = [np.zeros(300), np.array(k), np.array(0)]
    with pytest.raises(ValueError, match="negative"):
        run_code(function, given, lowered.constants, at_end=at_end)


@pytest.mark.parametrize("length", [-5, -100, -(10**6)])
def test_negative_lengths_that_are_computed_on_the_way(length):
    x, i, j = pt.vector("x"), pt.lvector("i"), pt.lscalar("j")
    function = native([x, i, j], pt.cumsum(pt.alloc(x[0], pt.cumsum(i)[j]))[j])
    with pytest.raises(ValueError, match="negative dimensions not allowed"):
        function(np.ones(2), np.array([length, 1]), 0)


def test_joins_of_more_elements_than_there_are_numbers():
    x, k, j = pt.vector("x"), pt.lscalar("k"), pt.lscalar("j")
    joined = pt.join(0, pt.alloc(x[0], k), pt.alloc(x[1], j), x)
    function = native([x, k, j], pt.cumsum(joined)[j])
    assert function(np.arange(3.0), 2, 3) == 2
    with pytest.raises(MemoryError):
        function(np.zeros(3), 2**62, 2**62)


def test_splits_whose_sizes_add_up_beyond_the_largest_number():
    x, sizes = pt.vector("x"), pt.tensor("sizes", dtype="int64", shape=(4,))
    function = native([x, sizes], [pt.exp(part) for part in pt.split(x, sizes, n_splits=4)])
    assert [len(part) for part in function(np.zeros(6), [1, 0, 2, 3])] == [1, 0, 2, 3]
    with pytest.raises(ValueError, match="Split sizes sum to"):
        function(np.zeros(6), [2**62, 2**62, 2**62, 2**62 + 6])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
def test_outputs_that_are_no_arrays(dtype):
    """PyTensor's functions return Python numbers for them."""
    x = ps.ScalarType(dtype)("x")
    found = []
    for is_on in (True, False):
        with pytensor_fuse.enabled(is_on):
            function = pytensor.function([x], [ps.add(x, x), pt.exp(x)], mode="NUMBA")
        found.append(function(np.dtype(dtype).type(1)))
    assert found[0] == found[1]
    assert [type(one) for one in found[0]] == [type(one) for one in found[1]]
    with pytest.raises(NativeLinkError, match="is a number of Python's"):
        pytensor.function([x], x, mode="NATIVE")


def _products_of_lengths(x, n, m):
    lengths = [n, m, n, m]
    many = pt.alloc(x[0], *lengths)
    places = [
        (pt.arange(length) * 1).reshape([-1 if axis == place else 1 for axis in range(4)])
        for place, length in enumerate(lengths)
    ]
    squares = x[:, None] * x
    base = squares[:, :, None, None] * squares
    late = pt.cumsum(pt.stack(lengths))[0]
    return {
        "nonzero": (pt.nonzero(many)[1].sum(), MemoryError),
        "nonzero, late": (pt.nonzero(pt.alloc(x[0], late, m, n, m))[0], MemoryError),
        "join of axes": (pt.cumsum(join_dims(many)), MemoryError),
        "reshape": (pt.cumsum(many.reshape((m, n, m, n, -1)), axis=0)[0, 0, 0, 0, 0], MemoryError),
        "reshape of few": (x.reshape((n, m, n, m, -1)).sum(), ValueError),
        "argmax": (pt.argmax(many), MemoryError),
        "read": (base[tuple(places)].sum(), IndexError),
        "write": (pt.inc_subtensor(base[tuple(places)], 1.0), IndexError),
    }


@pytest.mark.parametrize("name", _products_of_lengths(pt.vector(), pt.lscalar(), pt.lscalar()))
def test_arrays_of_more_elements_than_there_are_numbers(name):
    """(2^16)^4 is 0 in 64 bits."""
    x, n, m = pt.vector("x"), pt.lscalar("n"), pt.lscalar("m")
    output, exception = _products_of_lengths(x, n, m)[name]
    function = native([x, n, m], output)
    python = pytensor.function([x, n, m], output, mode=Mode("py", None), on_unused_input="ignore")
    given = np.arange(1.0, 3.0), 1, 1 if name == "reshape of few" else 2
    np.testing.assert_array_equal(function(*given), python(*given))
    with pytest.raises(exception):
        function(np.arange(1.0, 3.0), 2**16, 2**16)
