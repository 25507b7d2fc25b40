"""Graphs to merge, functions that merge them, and comparisons of the results."""

from collections import Counter

import numpy as np
import pytensor.tensor as pt
from hypothesis import strategies as st
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import MergeFeature, MergeOptimizer
from pytensor.graph.traversal import toposort
from pytensor.tensor.type import TensorType

import pytensor_fuse
from pytensor_fuse._activation.passes.merging import MergeRewriter
from pytensor_fuse._identity.contents import content
from support.random_graphs.building import Program

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
    """Merge only equal nodes, as PyTensor does; return the number of replaced variables.

    A kernel that computes more than the outputs of other nodes is left alone.
    """
    MergeRewriter().add_requirements(fgraph)
    tally = fgraph.merge_feature.merge()
    fgraph.check_integrity()
    return tally.n_merged


def merge_stock(fgraph):
    """Merge with PyTensor's own until nothing changes."""
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
    """Numbers for expressions, the same for equal ones in all graphs."""

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
            # PyTensor does not look at the others, unless they became outputs later.
            and any(not isinstance(node.op, Output) for node, _ in fgraph.clients[v])
        )
        return nodes, constants, [number[v] for v in fgraph.outputs]

    def _number(self, *key):
        return self.known.setdefault(key, len(self.known))


def assert_same_structure(one, other):
    structures = Structures()
    assert structures.of(one) == structures.of(other)


# A sum, and a kernel that computes the same sum and something else.
SHARING = Program((0,), ((1, 0, 0, 0), (12, 0, 0, 1)))


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
    if kind % 6 == 0:  # A duplicate of a node.
        new = old.owner.clone().outputs[old.owner.outputs.index(old)]
    elif kind % 6 == 1:  # A new node on top, of the same type or a more specific one.
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


def twice(x):
    return [pt.sin(x), pt.sin(x)]


def wide(x):
    """Return the sine of ``x`` by a node whose type has no static length."""
    node = pt.sin(x).owner
    output = TensorType("float64", (None,))()
    Apply(node.op, node.inputs, [output])
    return output


def several_to_merge():
    x = pt.dvector("x")
    ones = [pt.constant(np.ones(3)) for _ in range(4)]
    return FunctionGraph([x], [pt.sin(pt.exp(x + one)) for one in ones], clone=False)


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
