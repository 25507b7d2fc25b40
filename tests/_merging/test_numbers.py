"""Which constants and which ops merging takes for equal."""

from itertools import permutations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.configdefaults import config
from pytensor.graph.basic import Constant, NominalVariable
from pytensor.graph.fg import FunctionGraph

import pytensor_fuse
from pytensor_fuse._merging.feature import LazyMergeFeature
from support.merging import Unhashable, merge, merge_stock

# Constants --------------------------------------------------------------------------------


OTHER_NAN = np.array(0x7FF8000000000001, "uint64").view("float64")[()]


LINKERS = ["py", "vm", "cvm" if config.cxx else "vm", "numba"]


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("optimizer", ["fast_run", "fast_compile", None])
def test_signed_zeros(linker, optimizer):
    x = pt.dscalar("x")
    with pytensor_fuse.enabled():
        mode = Mode(linker, optimizer)
        function = pytensor.function([x], [x / 0.0, x / -0.0, x / np.zeros(())], mode=mode)
    np.testing.assert_array_equal(function(1.0), [np.inf, -np.inf, np.inf])


@pytest.mark.parametrize("linker", LINKERS)
def test_signed_zeros_in_arrays_and_copies_of_them(linker):
    x = pt.dvector("x")
    # PyTensor takes an array of nothing but zeros for one zero, whatever their signs.
    zeros = np.array([0.0, -0.0, 1.0])
    with pytensor_fuse.enabled():
        outputs = [pt.arctan2(c, x) for c in (zeros, -zeros)]
        function = pytensor.function([x], outputs, mode=Mode(linker, "fast_run"))
    for result, expected in zip(function(-np.ones(3)), [zeros, -zeros], strict=True):
        np.testing.assert_allclose(result, np.arctan2(expected, -np.ones(3)))


def sin_of(*constants):
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.sin(x + c) for c in constants], clone=False)
    merge(fgraph)
    return sum(node.op == pt.sin for node in fgraph.apply_nodes)


@pytest.mark.parametrize(
    ("first", "second", "nodes"),
    [
        (0.0, 0.0, 1),
        (0.0, -0.0, 2),
        (np.nan, np.nan, 1),
        (np.nan, OTHER_NAN, 2),
        (np.zeros(200), np.zeros(200), 1),
        (np.zeros(200), -np.zeros(200), 2),
        (np.full(3, np.nan), np.full(3, np.nan), 1),
        (np.full(3, np.nan), np.full(3, OTHER_NAN), 2),
        (1, 1.0, 2),
        (np.zeros(3), np.zeros(4), 2),
    ],
)
def test_constants_are_equal_bit_for_bit(first, second, nodes):
    assert sin_of(pt.constant(np.asarray(first)), pt.constant(np.asarray(second))) == nodes


def test_the_first_constant_stays():
    x = pt.dvector("x")
    first, second = pt.constant(np.ones(3), name="first"), pt.constant(np.ones(3), name="second")
    fgraph = FunctionGraph([x], [x + first, x * second], clone=False)
    profile = merge(fgraph)
    assert [v for v in fgraph.variables if isinstance(v, Constant)] == [first]
    assert profile[5:] == (1, 1)
    assert fgraph.clients[second] == []


def test_constants_that_are_outputs():
    x = pt.dscalar("x")
    out = pt.exp(x)
    constants = [pt.constant(np.float64(1.0)) for _ in range(3)]
    fgraph = FunctionGraph([x], [out, x + constants[0], constants[1]], clone=False)
    fgraph.attach_feature(LazyMergeFeature())
    fgraph.replace(out, constants[2])
    merge(fgraph)
    assert fgraph.outputs[0] is constants[0]


def test_a_constant_that_left_is_not_brought_back():
    x = pt.dscalar("x")
    first, second = (pt.constant(np.float64(1.0)) for _ in range(2))
    out = x + first
    fgraph = FunctionGraph([x], [out], clone=False)
    merge(fgraph)
    fgraph.replace(out, pt.exp(x * second))
    assert merge(fgraph)[5] == 0
    assert second in fgraph.variables
    assert first not in fgraph.variables


class Kept(pt.TensorConstant):
    """A class that keeps its constants apart."""

    def merge_signature(self):
        return id(self)


def test_a_class_can_keep_constants_apart():
    kept = [Kept(pt.dscalar, np.float64(1.0)) for _ in range(2)]
    assert sin_of(*kept) == 2
    assert sin_of(pt.constant(np.float64(1.0)), kept[0]) == 2


def test_nominal_variables():
    x, y = (NominalVariable(i, pt.dvector) for i in range(2))
    fgraph = FunctionGraph([x, y], [pt.sin(x), pt.sin(y), pt.sin(x)], clone=False)
    merge(fgraph)
    assert len(fgraph.apply_nodes) == 2


# Ops ---------------------------------------------------------------------------------------


def test_ops_that_cannot_be_hashed():
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [Unhashable(n)(x) for n in (1, 2, 3, 2, 1, 3)], clone=False)
    merge(fgraph)
    assert sorted(node.op.n for node in fgraph.apply_nodes) == [1, 2, 3]


class Family(Unhashable):
    def __eq__(self, other):
        return isinstance(other, Family) and self.n == other.n

    def __hash__(self):
        return hash(self.n)


class Sibling(Family):
    pass


class Stranger(Family):
    def __eq__(self, other):
        return isinstance(other, Family) and self.n == other.n

    def __hash__(self):
        return hash(self.n)


@pytest.mark.parametrize("other", [Sibling, Stranger])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_ops_of_different_classes_can_be_equal(other, order):
    x = pt.dvector("x")
    ops = [Family(2), other(2), other(3)]
    for merge_with in (merge_stock, merge):
        fgraph = FunctionGraph([x], [ops[i](x) for i in order], clone=False)
        merge_with(fgraph)
        assert sorted(node.op.n for node in fgraph.apply_nodes) == [2, 3]


def test_many_ops_on_one_variable():
    x = pt.dvector("x")
    functions = [pt.sin, pt.cos, pt.exp, pt.tan, pt.sinh]
    outputs = [function(x) for _ in range(3) for function in functions]
    fgraph = FunctionGraph([x], outputs, clone=False)
    merge(fgraph)
    assert len(fgraph.apply_nodes) == len(functions)
    for function in functions:
        fgraph.add_output(function(x))
    merge(fgraph)
    assert len(fgraph.apply_nodes) == len(functions)
