"""Merging leaves what PyTensor's own leaves, except that equal constants have equal bits."""

import gc
import io
import pickle
import re
import weakref
from collections import Counter
from contextlib import suppress
from itertools import permutations
from typing import ClassVar

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pytensor.compile.mode import Mode
from pytensor.configdefaults import config
from pytensor.graph.basic import Apply, Constant, NominalVariable
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import AlreadyThere, Feature, History
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import MergeFeature, MergeOptimizer
from pytensor.graph.traversal import toposort
from pytensor.graph.utils import InconsistencyError
from pytensor.link.c.type import generic
from pytensor.tensor.type import TensorType

import pytensor_fuse
from pytensor_fuse._activation.passes.merging import MergeRewriter
from pytensor_fuse._identity.contents import content
from pytensor_fuse._merging.feature import LazyMergeFeature, adopt
from support.graphs import Witness, deep_small_kernels, large_fuseable_graph, picture
from support.strategies import Program, any_programs, build, seeded_program

with pytensor_fuse.enabled(False):
    stock_apply = MergeOptimizer.apply


def merge(fgraph):
    """Merge with ours, and check the graph and the profile."""
    rewriter = MergeRewriter()
    rewriter.add_requirements(fgraph)
    before = len(fgraph.apply_nodes)
    profile = rewriter.apply(fgraph)
    fgraph.check_integrity()
    assert len(fgraph.apply_nodes) <= before
    return profile


def merge_nodes(fgraph):
    """Merge equal nodes alone, as PyTensor does; return how many variables were replaced.

    What kernels compute besides the outputs of other nodes is left.
    """
    MergeRewriter().add_requirements(fgraph)
    tally = fgraph.merge_feature.merge(fgraph)
    fgraph.check_integrity()
    return tally.n_merged


def merge_stock(fgraph):
    """Merge with PyTensor's own until that changes nothing."""
    while True:
        before = len(fgraph.apply_nodes), len(fgraph.variables)
        if hasattr(fgraph, "merge_feature"):
            fgraph.remove_feature(fgraph.merge_feature)
            del fgraph.merge_feature
        fgraph.attach_feature(MergeFeature())
        stock_apply(MergeOptimizer(), fgraph)
        if before == (len(fgraph.apply_nodes), len(fgraph.variables)):
            return


class Structures:
    """Numbers for expressions, the same for equal ones in whatever graph."""

    def __init__(self):
        self.known = {}

    def of(self, fgraph):
        """Return how often each expression is computed, and the numbers of the outputs."""
        number = {v: self._number("input", i, v.type) for i, v in enumerate(fgraph.inputs)}
        nodes = Counter()
        for node in [*toposort(fgraph.outputs), *(Output(0).make_node(o) for o in fgraph.outputs)]:
            for v in node.inputs:
                if isinstance(v, Constant):
                    number[v] = self._number("constant", v.type, content(v))
            if isinstance(node.op, Output):
                continue
            key = (node.op, *(number[v] for v in node.inputs), *(v.type for v in node.outputs))
            nodes[self._number(*key)] += 1
            for i, v in enumerate(node.outputs):
                number[v] = self._number("output", i, *key)
        constants = Counter(
            number[v]
            for v in fgraph.variables
            if isinstance(v, Constant)
            # PyTensor does not look at the others, unless they came to be outputs later.
            and any(not isinstance(node.op, Output) for node, _ in fgraph.clients[v])
        )
        return nodes, constants, [number[v] for v in fgraph.outputs]

    def _number(self, *key):
        return self.known.setdefault(key, len(self.known))


def assert_same_structure(one, other):
    structures = Structures()
    assert structures.of(one) == structures.of(other)


# As PyTensor's own ------------------------------------------------------------------------


# A sum, and a kernel that computes the same sum beside something else.
SHARING = Program((0,), ((1, 0, 0, 0), (12, 0, 0, 1)))


@given(any_programs(24, widen=False))
@example(SHARING)
def test_random_graphs(program):
    ours, stock = build(program).fgraph, build(program).fgraph
    witness = Witness()
    ours.attach_feature(witness)
    merge_nodes(ours)
    witness.assert_agrees(ours)
    merge_stock(stock)
    assert_same_structure(ours, stock)
    merge(ours)
    witness.assert_agrees(ours)
    # A second time there is nothing to do.
    before = picture(ours)
    assert merge(ours)[5] == 0
    assert picture(ours) == before


@given(any_programs(24))
@example(SHARING)
def test_random_graphs_with_wide_types(program):
    """What a node that says less is merged with depends on the order, but not how many are left."""
    ours, stock = build(program).fgraph, build(program).fgraph
    merge_nodes(ours)
    merge_stock(stock)
    assert len(ours.apply_nodes) == len(stock.apply_nodes)


@st.composite
def edits(draw):
    return draw(st.lists(st.tuples(*[st.integers(0, 40)] * 3), min_size=1, max_size=12))


def edit(fgraph, kind, which, other):
    """Do one random edit that keeps the graph valid."""
    order = fgraph.toposort()
    if not order:
        return
    variables = [v for node in order for v in node.outputs]
    old = variables[which % len(variables)]
    if kind % 6 == 0:  # An equal of a node.
        new = old.owner.clone().outputs[old.owner.outputs.index(old)]
    elif kind % 6 == 1:  # Something new over it, of the same type or a narrower one.
        inner = old.owner.clone().outputs[old.owner.outputs.index(old)]
        new = old.type.filter_variable(pt.switch(np.array(True), inner, inner), allow_convert=True)
    elif kind % 6 == 2:  # Another variable that does not depend on it.
        before = [*fgraph.inputs, *variables[: which % len(variables)]]
        fits = [v for v in before if old.type.is_super(v.type)]
        if not fits:
            return
        new = fits[other % len(fits)]
    elif kind % 6 == 3 and isinstance(old.type, TensorType):  # A constant.
        if None in old.type.shape:
            return
        new = pt.constant(np.full(old.type.shape, other % 3, dtype=old.type.dtype))
    elif kind % 6 == 4:  # One input of one client.
        clients = [c for c in fgraph.clients[old] if not isinstance(c[0].op, Output)]
        if not clients:
            return
        client, i = clients[other % len(clients)]
        new = old.owner.clone().outputs[old.owner.outputs.index(old)]
        fgraph.change_node_input(client, i, new)
        return
    else:  # Merge.
        merge_nodes(fgraph)
        return
    fgraph.replace(old, new, reason="test")


@given(any_programs(16, widen=False), edits())
@example(SHARING, [(0, 0, 0)])
def test_edits_between_passes(program, sequence):
    fgraph = build(program).fgraph
    fgraph.attach_feature(LazyMergeFeature())
    for step in sequence:
        edit(fgraph, *step)
    stock = fgraph.clone_get_equiv(attach_feature=False)[0]
    merge_nodes(fgraph)
    merge_stock(stock)
    assert len(fgraph.apply_nodes) == len(stock.apply_nodes)
    assert_same_structure(fgraph, stock)


GRAPHS = {
    "deep": lambda: deep_small_kernels(20),
    "large": lambda: large_fuseable_graph(6),
    **{f"random {i}": lambda i=i: build(seeded_program(i)).fgraph for i in range(4)},
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("inplace", [True, False])
def test_every_merge_of_a_compile(name, inplace, monkeypatch):
    """What PyTensor's own pass leaves at each place of a whole compile, ours leaves."""
    seen = Counter()

    def apply(self, fgraph):
        copy = FunctionGraph(fgraph.inputs, fgraph.outputs, clone=True)
        result = stock_apply(self, fgraph)
        merge_nodes(copy)
        assert_same_structure(copy, fgraph)
        seen[self.name] += 1
        return result

    graph = GRAPHS[name]()
    mode = Mode("py", "fast_run")
    mode = mode if inplace else mode.excluding("inplace")
    with pytensor_fuse.enabled(False), monkeypatch.context() as patch:
        patch.setattr(MergeOptimizer, "apply", apply)
        pytensor.function(graph.inputs, graph.outputs, mode=mode, on_unused_input="ignore")
    assert {"merge1", "merge1.1", "merge", "merge1.2", "merge2", "merge3"} <= set(seen)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_whole_compiles(name, mode):
    graph = GRAPHS[name]()
    compiled = []
    for on in (False, True):
        with pytensor_fuse.enabled(on):
            # How our fusion differs is for other tests to say.
            how = Mode("py", mode).excluding("fusion")
            function = pytensor.function(
                graph.inputs, graph.outputs, mode=how, on_unused_input="ignore"
            )
        compiled.append(function.maker.fgraph)
    assert_same_structure(*compiled)
    assert not isinstance(compiled[0].merge_feature, LazyMergeFeature)
    assert isinstance(compiled[1].merge_feature, LazyMergeFeature)


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


# Which one stays --------------------------------------------------------------------------


def twice(x):
    return [pt.sin(x), pt.sin(x)]


def test_the_first_node_stays():
    x = pt.dvector("x")
    outputs = [*twice(x), *twice(x)]
    fgraph = FunctionGraph([x], outputs, clone=False)
    merge(fgraph)
    assert fgraph.outputs == [outputs[0]] * 4
    # One that was there stays also if it changes its place in the order.
    new = pt.sin(x)
    fgraph.replace(outputs[0], pt.exp(new))
    merge(fgraph)
    later = pt.sin(x)
    fgraph.add_output(later)
    merge(fgraph)
    assert fgraph.outputs[4] is new


def wide(x):
    """The sine of ``x`` by a node whose type says nothing of its length."""
    node = pt.sin(x).owner
    output = TensorType("float64", (None,))()
    Apply(node.op, node.inputs, [output])
    return output


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)])
def test_the_more_specific_type_stays(order):
    x = TensorType("float64", (3,))("x")
    outputs = [wide(x), wide(x), pt.sin(x)]
    fgraph = FunctionGraph([x], [pt.exp(outputs[i]) for i in order], clone=False)
    merge(fgraph)
    assert len(fgraph.apply_nodes) == 2
    assert outputs[2] in fgraph.variables


class Pair(Op):
    __props__ = ()

    def make_node(self, x, shapes):
        return Apply(self, [x], [TensorType("float64", shape)() for shape in shapes])

    def perform(self, node, inputs, outputs):
        for storage in outputs:
            storage[0] = inputs[0].copy()


def pairs(*shapes):
    """Merge nodes of two outputs with these shapes; return how many stay, and what is read."""
    x = pt.dmatrix("x")
    nodes = [Pair().make_node(x, s) for s in shapes]
    fgraph = FunctionGraph([x], [pt.exp(o) for n in nodes for o in n.outputs], clone=False)
    merge(fgraph)
    values = np.arange(15.0).reshape(3, 5)
    function = pytensor.function(fgraph.inputs, fgraph.outputs, mode=Mode("py", None))
    for result in function(values):
        np.testing.assert_array_equal(result, np.exp(values))
    types = [node.inputs[0].type.shape for node in fgraph.apply_nodes if node.op == pt.exp]
    return sum(isinstance(node.op, Pair) for node in fgraph.apply_nodes), Counter(types)


def test_several_outputs():
    # PyTensor's own keeps both nodes in all of these cases.
    better = Counter([(None, 5), (3, 5)])
    assert pairs([(None, None), (3, 5)], [(None, 5), (3, 5)]) == (1, better)
    assert pairs([(None, 5), (3, 5)], [(None, None), (3, 5)]) == (1, better)
    # Neither says more in both: each output has the better type, so both nodes stay.
    assert pairs([(None, None), (3, 5)], [(None, 5), (None, None)]) == (2, better)


def test_types_of_which_neither_says_more():
    n, types = pairs([(None, 5), (3, 5)], [(3, None), (3, 5)])
    assert n == 1
    assert set(types) == {(None, 5), (3, 5)}


# Validation -------------------------------------------------------------------------------


class Refuser(Feature):
    """Refuses graphs that lack a node."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.n_refused = 0

    def on_validate(self, fgraph):
        if not fgraph.apply_nodes.issuperset(self.nodes):
            self.n_refused += 1
            raise InconsistencyError("refused")


def test_refused_merges_are_undone_and_others_done():
    x = pt.dvector("x")
    a, b = twice(x)
    c, d = pt.cos(x), pt.cos(x)
    fgraph = FunctionGraph([x], [pt.exp(v) for v in (a, b, c, d)], clone=False)
    refuser, witness = Refuser([a.owner, b.owner]), Witness()
    fgraph.attach_feature(refuser)
    fgraph.attach_feature(witness)
    n_refused, *_, n_merged, _ = merge(fgraph)
    witness.assert_agrees(fgraph)
    assert refuser.n_refused == n_refused == 1
    assert n_merged == 2
    assert {a, b, c} <= fgraph.variables
    assert fgraph.merge_feature.blacklist == []
    # It is not tried again while nothing changes, but a third one may be merged with either.
    assert merge(fgraph)[0] == 0
    fgraph.replace(c, pt.sin(x))
    assert merge(fgraph)[0] == 0
    assert {a, b} <= fgraph.variables
    assert sum(node.op == pt.sin for node in fgraph.apply_nodes) == 2


class Destroy(Op):
    __props__ = ("n",)
    destroy_map: ClassVar = {0: [0]}

    def __init__(self, n=0):
        self.n = n

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        inputs[0] += 1
        outputs[0][0] = inputs[0]


class Reading(Destroy):
    destroy_map: ClassVar = {}


@pytest.mark.parametrize(("first", "second"), [(Destroy, Destroy), (Destroy, Reading)])
def test_destroyed_variables(first, second):
    x = pt.dvector("x")
    a, b = twice(x)
    outputs = [first(0)(a), second(1)(b)]
    fgraph = FunctionGraph([x], outputs, clone=False)
    fgraph.attach_feature(DestroyHandler())
    stock, equivalent = fgraph.clone_get_equiv()
    del equivalent
    profile = merge(fgraph)
    stock.attach_feature(MergeFeature())
    stock_apply(MergeOptimizer(), stock)
    fgraph.validate()
    if second is Destroy:
        # Known to be refused without trying.
        assert profile[0] == profile[5] == 0
        assert len(fgraph.apply_nodes) == len(stock.apply_nodes) == 4


def test_merging_what_destroys():
    x = pt.dvector("x")
    outputs = [Destroy()(v) for v in twice(x)]
    fgraph = FunctionGraph([x], outputs, clone=False)
    fgraph.attach_feature(DestroyHandler())
    stock, _ = fgraph.clone_get_equiv()
    merge(fgraph)
    fgraph.validate()
    stock.attach_feature(MergeFeature())
    stock_apply(MergeOptimizer(), stock)
    assert len(fgraph.apply_nodes) == len(stock.apply_nodes)


def several_to_merge():
    x = pt.dvector("x")
    ones = [pt.constant(np.ones(3)) for _ in range(4)]
    return FunctionGraph([x], [pt.sin(pt.exp(x + one)) for one in ones], clone=False)


class Raising(Feature):
    """Raises when it hears of one event for the given time."""

    def __init__(self, when, error, *, always=False):
        self.left, self.error, self.always = when, error, always

    def _hear(self, reason):
        if str(reason).startswith("revert"):
            return
        self.left -= 1
        if self.left == 0 or (self.always and self.left < 0):
            raise self.error("raised by a feature")


class RaisingOnChange(Raising):
    def on_change_input(self, fgraph, node, i, r, new_r, reason=None):
        self._hear(reason)


class RaisingOnPrune(Raising):
    def on_prune(self, fgraph, node, reason):
        self._hear(reason)


@pytest.mark.parametrize("kind", [RaisingOnChange, RaisingOnPrune])
@pytest.mark.parametrize("when", [1, 2, 3])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, InconsistencyError])
@pytest.mark.parametrize("always", [True, False])
def test_features_that_raise(kind, when, error, always):
    fgraph = several_to_merge()
    witness = Witness()
    fgraph.attach_feature(witness)
    fgraph.attach_feature(LazyMergeFeature())
    fgraph.attach_feature(kind(when, error, always=always))
    raised = False
    try:
        MergeRewriter().apply(fgraph)
    except error:
        raised = True
    assert raised or not always or error is InconsistencyError
    fgraph.check_integrity()
    witness.assert_agrees(fgraph)
    # Without it all is merged.
    fgraph.remove_feature(fgraph._features[-1])
    if not raised and error is not InconsistencyError:
        assert len(fgraph.apply_nodes) == 3
    x = np.zeros(3)
    function = pytensor.function(fgraph.inputs, fgraph.outputs, mode=Mode("py", None))
    np.testing.assert_array_equal(function(x), [np.sin(np.exp(x + 1))] * 4)


@pytest.mark.parametrize("kind", [RaisingOnChange, RaisingOnPrune])
@pytest.mark.parametrize("when", range(1, 8))
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("always", [True, False])
@pytest.mark.parametrize("one_by_one", [True, False])
def test_what_a_feature_broke_off_is_merged_by_the_next_pass(kind, when, error, always, one_by_one):
    fgraph = several_to_merge()
    fgraph.attach_feature(LazyMergeFeature())
    if one_by_one:
        fgraph.attach_feature(Refuser([]))
    raising = kind(when, error, always=always)
    fgraph.attach_feature(raising)
    with suppress(error):
        MergeRewriter().apply(fgraph)
    fgraph.remove_feature(raising)
    merge(fgraph)
    assert len(fgraph.apply_nodes) == 3


@pytest.mark.parametrize("when", range(1, 10))
def test_types_of_which_neither_says_more_after_a_feature_raised(when):
    x, y = pt.dmatrices("x", "y")
    shapes = [(None, 5), (3, 5)], [(3, None), (3, 5)]
    nodes = [Pair().make_node(v, s) for v in (x, y) for s in shapes]
    outputs = [pt.exp(o) for n in nodes for o in n.outputs]
    outputs += [pt.sin(v) for v in twice(x)]
    fgraph = FunctionGraph([x, y], outputs, clone=False)
    fgraph.attach_feature(LazyMergeFeature())
    undisturbed = fgraph.clone()
    merge(undisturbed)
    raising = RaisingOnChange(when, ValueError)
    fgraph.attach_feature(raising)
    with suppress(ValueError):
        MergeRewriter().apply(fgraph)
    fgraph.remove_feature(raising)
    merge(fgraph)
    assert len(fgraph.apply_nodes) == len(undisturbed.apply_nodes)


# What others read, and mixed use -----------------------------------------------------------


def test_the_public_attributes():
    x = pt.dvector("x")
    one, other = (pt.constant(np.ones(3)) for _ in range(2))
    fgraph = FunctionGraph([x], [pt.sin(x + one), pt.exp(x * other), pt.exp(x * one)], clone=False)
    stock = fgraph.clone_get_equiv()[0]
    stock.attach_feature(MergeFeature())
    fgraph.attach_feature(LazyMergeFeature())
    ours, theirs = fgraph.merge_feature, stock.merge_feature
    for _ in range(2):
        assert isinstance(ours, MergeFeature)
        assert ours.seen_atomics == {id(one)}
        assert ours.atomic_sig[one] == one.signature()
        assert ours.atomic_sig_inv.get(other.signature(), None) is one
        assert ours.atomic_sig_inv[other.signature()] is one
        assert ours.atomic_sig_inv.get(pt.constant(np.zeros(3)).signature(), "none") == "none"
        assert ours.nodes_seen <= fgraph.apply_nodes
        assert len(ours.noinput_nodes) == len(theirs.noinput_nodes) == 0
        assert ours.blacklist == theirs.blacklist == []
        assert bool(ours.scheduled) is bool(theirs.scheduled)
        merge(fgraph)
        stock_apply(MergeOptimizer(), stock)
    assert len(ours.nodes_seen) == len(theirs.nodes_seen) == len(fgraph.apply_nodes)


def test_constants_are_found_as_soon_as_they_are_in_the_graph():
    """As PyTensor's subtensor rewrites ask for them."""
    x = pt.dvector("x")
    out = pt.exp(x)
    fgraph = FunctionGraph([x], [out], clone=False)
    fgraph.attach_feature(LazyMergeFeature())
    index = pt.constant(np.array([0, 1]))
    find = fgraph.merge_feature.atomic_sig_inv.get
    signature = pt.constant(np.array([0, 1])).signature()
    assert find(signature, None) is None
    fgraph.replace(out, pt.exp(x)[index].sum() + x)
    assert find(signature, None) is index
    fgraph.replace(fgraph.outputs[0], pt.cos(x))
    assert find(signature, None) is None
    assert find((slice, 1), None) is None


def test_there_is_one_feature_for_merging():
    fgraph = several_to_merge()
    fgraph.attach_feature(MergeFeature())
    with pytest.raises(AlreadyThere):
        LazyMergeFeature().on_attach(fgraph)
    MergeRewriter().add_requirements(fgraph)
    assert type(fgraph.merge_feature) is MergeFeature


def test_our_pass_and_a_feature_of_pytensor():
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [x + np.zeros(3), x + -np.zeros(3), *twice(x)], clone=False)
    feature = MergeFeature()
    fgraph.attach_feature(feature)
    assert merge(fgraph)[5] == 1
    assert len(fgraph.apply_nodes) == 3
    assert fgraph.merge_feature is feature
    assert type(feature) is LazyMergeFeature


def test_our_pass_and_a_feature_of_someone_else():
    class Other(MergeFeature):
        pass

    fgraph = several_to_merge()
    fgraph.attach_feature(Other())
    assert merge(fgraph)[5] == 3 + 9
    assert type(fgraph.merge_feature) is Other
    assert adopt(fgraph) is None


@given(any_programs(16, widen=False), edits())
@example(SHARING, [(0, 0, 0)])
def test_the_pass_of_pytensor_and_our_feature(program, sequence):
    fgraph = build(program).fgraph
    fgraph.attach_feature(LazyMergeFeature())
    for step in sequence:
        edit(fgraph, *step)
    stock = fgraph.clone_get_equiv(attach_feature=False)[0]
    stock_apply(MergeOptimizer(), fgraph)
    fgraph.check_integrity()
    merge_stock(stock)
    assert_same_structure(fgraph, stock)
    assert merge_nodes(fgraph) == 0


def test_what_was_scheduled_and_not_merged_is_merged_later():
    fgraph = several_to_merge()
    fgraph.attach_feature(LazyMergeFeature())
    assert len(fgraph.merge_feature.scheduled) > 0
    merge(fgraph)
    assert len(fgraph.apply_nodes) == 3


def test_switching_between_passes_of_one_compile():
    graph = large_fuseable_graph(5)
    with pytensor_fuse.enabled():
        fgraph = FunctionGraph(graph.inputs, graph.outputs)
        rewriter = pytensor.compile.mode.optdb.query("+merge")
        rewriter.rewrite(fgraph)
    ours = fgraph.clone_get_equiv(attach_feature=False)[0]
    with pytensor_fuse.enabled(False):
        rewriter.rewrite(fgraph)
    assert_same_structure(fgraph, ours)


def test_clones_and_pickles():
    fgraph = several_to_merge()
    fgraph.attach_feature(LazyMergeFeature())
    for copy in (fgraph.clone(), pickle.loads(pickle.dumps(fgraph))):
        assert type(copy.merge_feature) is LazyMergeFeature
        assert copy.merge_feature is not fgraph.merge_feature
        merge(copy)
        assert len(copy.apply_nodes) == 3
    assert not hasattr(LazyMergeFeature(), "_pending")


class Unhashable(Op):
    __hash__ = None

    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return type(self) is type(other) and self.n == other.n

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * self.n


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


def test_the_table_does_not_grow_with_what_is_gone():
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    merge(fgraph)
    for i in range(1500):
        fgraph.replace(fgraph.outputs[0], pt.exp(x + pt.constant(np.float64(i))))
        merge(fgraph)
    feature = fgraph.merge_feature
    assert len(feature._table) < 1200
    assert len(feature._numbers.constants) <= 1200


class Anything:
    """Data without a content that could be compared."""


class ReadingData(Unhashable):
    __hash__ = object.__hash__

    def make_node(self, x, data):
        return Apply(self, [x, Constant(generic, data)], [x.type()])


@pytest.mark.parametrize("ours", [False, True])
def test_what_left_the_graph_is_not_kept_alive(ours):
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    fgraph.attach_feature(LazyMergeFeature() if ours else MergeFeature())
    gone = []
    for n in range(1500):
        op, data = ReadingData(n), Anything()
        gone += weakref.ref(op), weakref.ref(data)
        fgraph.replace(fgraph.outputs[0], op(x, data) + ReadingData(-n)(x, data))
        del op, data
        if ours:
            merge(fgraph)
        else:
            stock_apply(MergeOptimizer(), fgraph)
        # PyTensor itself keeps what left a graph, in these two places.
        for variable in fgraph.clients.keys() - fgraph.variables:
            del fgraph.clients[variable]
        for feature in fgraph._features:
            if isinstance(feature, History):
                feature.history[fgraph].clear()
    gc.collect()
    assert sum(reference() is not None for reference in gone) < 2400


def test_what_is_looked_up_is_not_kept_alive():
    fgraph = several_to_merge()
    fgraph.attach_feature(LazyMergeFeature())
    data = Anything()
    assert fgraph.merge_feature.atomic_sig_inv.get((generic, data), None) is None
    gone = weakref.ref(data)
    del data
    gc.collect()
    assert gone() is None


def test_profile_and_printing(capsys):
    fgraph = several_to_merge()
    profile = merge(fgraph)
    assert profile[0] == 0
    assert profile[2:5] == (None, None, {})
    assert profile[5:] == (3 + 9, 3)
    twice_as_much = MergeOptimizer.merge_profile(profile, profile)
    assert twice_as_much[5:] == (24, 6)
    MergeRewriter.print_profile(None, twice_as_much)
    assert "MergeOptimizer" in capsys.readouterr().out
    assert str(MergeRewriter()) == str(MergeOptimizer())


def test_profiled_compiles():
    x = pt.dvector("x")
    with pytensor_fuse.enabled(), config.change_flags(profile=True, profile_optimizer=True):
        function = pytensor.function([x], [pt.sin(x) + 1, pt.sin(x) + 2], mode=Mode("py"))
    printed = io.StringIO()
    function.profile.summary(file=printed)
    assert re.search(r"nb fail= +0 merged= +[1-9]", printed.getvalue())


def test_verbose_option(capsys):
    x = pt.dvector("x")
    with config.change_flags(optimizer_verbose=True):
        merge(FunctionGraph([x], twice(x), clone=False))
    assert "MergeOptimizer replaces" in capsys.readouterr().out


# Plans that are not carried out ------------------------------------------------------------


class RaisingOnce(Feature):
    """Raises when the first input changes; with ``twice``, also when that is taken back."""

    def __init__(self, *, twice=False):
        self.n_left = 1 + twice

    def on_change_input(self, fgraph, node, i, r, new_r, reason=None):
        if self.n_left:
            self.n_left -= 1
            raise ValueError("raised by a feature")


class Checking(Feature):
    """Allows everything."""

    def on_validate(self, fgraph):
        pass


class Numbered(Op):
    """Compared by a number, and by what a test wants to happen then."""

    meanwhile: ClassVar = staticmethod(lambda: None)

    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        Numbered.meanwhile()
        return type(self) is type(other) and self.n == other.n

    def __hash__(self):
        return hash(self.n)

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * self.n


def fail():
    raise ValueError("raised by a comparison")


def n_of(fgraph, op):
    return sum(node.op == op for node in fgraph.apply_nodes)


def known_to_say_less():
    """Return a merged graph, and a node equal to one of it whose type says more."""
    x = TensorType("float64", (3,))("x")
    fgraph = FunctionGraph([x], [pt.exp(wide(x)), pt.cos(x), Numbered(1)(x)], clone=False)
    merge(fgraph)
    return fgraph, pt.tan(pt.sin(x))


def test_one_that_says_less_is_found_although_merges_may_be_refused():
    fgraph, more = known_to_say_less()
    fgraph.attach_feature(Checking())
    fgraph.replace(fgraph.outputs[1], more)
    merge(fgraph)
    assert n_of(fgraph, pt.sin) == 1


def test_one_that_says_less_is_found_after_a_feature_has_raised():
    fgraph, more = known_to_say_less()
    fgraph.replace(fgraph.outputs[1], more)
    raising = RaisingOnce()
    fgraph.attach_feature(raising)
    merge(fgraph)
    assert raising.n_left == 0
    fgraph.remove_feature(raising)
    merge(fgraph)
    assert n_of(fgraph, pt.sin) == 1


def test_one_that_says_less_is_found_after_a_comparison_has_raised(monkeypatch):
    fgraph, more = known_to_say_less()
    [x] = fgraph.inputs
    fgraph.add_output(more)
    fgraph.add_output(Numbered(2)(x))
    with monkeypatch.context() as patch:
        patch.setattr(Numbered, "meanwhile", fail)
        with pytest.raises(ValueError, match="raised by a comparison"):
            merge(fgraph)
    merge(fgraph)
    assert n_of(fgraph, pt.sin) == 1


def test_what_changes_while_ops_are_compared_is_merged(monkeypatch):
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [Numbered(n)(x) for n in (1, 2, 2)], clone=False)

    def change():
        monkeypatch.setattr(Numbered, "meanwhile", lambda: None)
        fgraph.replace(fgraph.outputs[0], Numbered(2)(x))

    merge_nodes(fgraph)
    fgraph.add_output(Numbered(2)(x))
    monkeypatch.setattr(Numbered, "meanwhile", change)
    merge_nodes(fgraph)
    merge_nodes(fgraph)
    assert len(fgraph.apply_nodes) == 1


@pytest.mark.parametrize("which", [0, 1])
def test_a_refused_merge_is_tried_again_after_a_change_and_back(which):
    x, y = pt.dvectors("x", "y")
    equal = pt.sin(x), pt.sin(x)
    fgraph = FunctionGraph([x, y], [pt.exp(equal[0]), pt.cos(equal[1]), y + 1], clone=False)
    refuse = RefuseLosses()
    fgraph.attach_feature(refuse)
    merge(fgraph)
    assert n_of(fgraph, pt.sin) == 2
    fgraph.remove_feature(refuse)
    for variable in (y, x):
        fgraph.change_node_input(equal[which].owner, 0, variable)
        merge(fgraph)
    assert n_of(fgraph, pt.sin) == 1


class RefuseLosses(Feature):
    def on_attach(self, fgraph):
        self.n_nodes = len(fgraph.apply_nodes)

    def on_validate(self, fgraph):
        if len(fgraph.apply_nodes) < self.n_nodes:
            raise InconsistencyError("a node is lost")


def test_a_feature_that_raises_again_when_its_change_is_taken_back():
    x = pt.dvector("x")
    ones = [pt.constant(np.ones(3)) for _ in range(3)]
    fgraph = FunctionGraph([x], [pt.sin(x + one) for one in ones], clone=False)
    raising = RaisingOnce(twice=True)
    # Before ours, which does not hear of what this one refuses to hear of.
    fgraph.attach_feature(raising)
    fgraph.attach_feature(Checking())
    with pytest.raises(ValueError, match="raised by a feature"):
        merge(fgraph)
    fgraph.remove_feature(raising)
    merge(fgraph)
    assert len(fgraph.apply_nodes) == 2


def test_an_interrupted_clearing_forgets_nothing(monkeypatch):
    x = pt.dvector("x")
    outputs = [pt.exp(x), Numbered(1)(x), Numbered(2)(x), pt.sin(x)]
    fgraph = FunctionGraph([x], outputs, clone=False)
    merge(fgraph)
    feature = fgraph.merge_feature
    with monkeypatch.context() as patch:
        patch.setattr(Numbered, "meanwhile", fail)
        with pytest.raises(ValueError, match="raised by a comparison"):
            feature._tidy(fgraph)
    for variable in (pt.exp(x), Numbered(2)(x), pt.sin(x)):
        fgraph.add_output(variable)
    merge(fgraph)
    assert len(fgraph.apply_nodes) == 4


def test_the_table_does_not_grow_with_equals_that_are_gone():
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    merge(fgraph)
    for _ in range(1500):
        fgraph.add_output(pt.exp(x))
        merge_nodes(fgraph)
        fgraph.remove_output(1)
    assert len(fgraph.merge_feature._table) < 1200


def test_a_plan_of_an_earlier_look_up_is_refused():
    fgraph = several_to_merge()
    MergeRewriter().add_requirements(fgraph)
    feature = fgraph.merge_feature
    plan = feature._plan(one=False)
    assert len(feature._table.queue(plan)) == plan.n_looked_up
    feature._plan(one=False)
    with pytest.raises(ValueError, match="not the last one"):
        feature._table.queue(plan)
