"""Merging leaves what PyTensor's own leaves, except that equal constants have equal bits."""

import pickle
from collections import Counter

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.mode import Mode
from pytensor.configdefaults import config
from pytensor.graph.basic import Apply, Constant, NominalVariable
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import AlreadyThere, Feature
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import MergeFeature, MergeOptimizer
from pytensor.graph.traversal import toposort
from pytensor.graph.utils import InconsistencyError
from pytensor.tensor.type import TensorType

import pytensor_fuse
from graphs import Witness, deep_small_kernels, large_fuseable_graph, picture
from pytensor_fuse._constants import content
from pytensor_fuse._merge import LazyMergeFeature, adopt
from pytensor_fuse._registration import MergeRewriter
from strategies import any_programs, build, seeded_program

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
        constants = Counter(number[v] for v in fgraph.variables if isinstance(v, Constant))
        return nodes, constants, [number[v] for v in fgraph.outputs]

    def _number(self, *key):
        return self.known.setdefault(key, len(self.known))


def assert_same_structure(one, other):
    structures = Structures()
    assert structures.of(one) == structures.of(other)


# As PyTensor's own ------------------------------------------------------------------------


@given(any_programs(24, widen=False))
def test_random_graphs(program):
    ours, stock = build(program).fgraph, build(program).fgraph
    witness = Witness()
    ours.attach_feature(witness)
    merge(ours)
    witness.assert_agrees(ours)
    merge_stock(stock)
    assert_same_structure(ours, stock)
    # A second time there is nothing to do.
    before = picture(ours)
    assert merge(ours)[5] == 0
    assert picture(ours) == before


@given(any_programs(24))
def test_random_graphs_with_wide_types(program):
    """What a node that says less is merged with depends on the order, but not how many are left."""
    ours, stock = build(program).fgraph, build(program).fgraph
    merge(ours)
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
        merge(fgraph)
        return
    fgraph.replace(old, new, reason="test")


@given(any_programs(16, widen=False), edits())
def test_edits_between_passes(program, sequence):
    fgraph = build(program).fgraph
    fgraph.attach_feature(LazyMergeFeature())
    for step in sequence:
        edit(fgraph, *step)
    stock = fgraph.clone_get_equiv(attach_feature=False)[0]
    merge(fgraph)
    merge_stock(stock)
    assert len(fgraph.apply_nodes) == len(stock.apply_nodes)
    assert_same_structure(fgraph, stock)
