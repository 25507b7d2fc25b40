"""Which of equal nodes stays, what features refuse, and plans that are not carried out."""

from collections import Counter
from contextlib import suppress
from typing import ClassVar

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import MergeFeature, MergeOptimizer
from pytensor.graph.utils import InconsistencyError
from pytensor.tensor.type import TensorType

from pytensor_fuse._activation.passes.merging import MergeRewriter
from pytensor_fuse._merging.feature import LazyMergeFeature
from support.graphs import Witness
from support.merging import merge, merge_nodes, several_to_merge, stock_apply, twice, wide

# Which one stays --------------------------------------------------------------------------


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


# The table ---------------------------------------------------------------------------------


def test_the_table_does_not_grow_with_what_is_gone():
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    merge(fgraph)
    for i in range(1500):
        fgraph.replace(fgraph.outputs[0], pt.exp(x + pt.constant(np.float64(i))))
        merge(fgraph)
    merger = fgraph.merge_feature.merger
    assert len(merger._table) < 1200
    assert merger._rules.numbers.n_constants <= 1200


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
            feature.merger.tidy()
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
    assert len(fgraph.merge_feature.merger._table) < 1200
