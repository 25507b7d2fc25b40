"""The features of a graph."""

from __future__ import annotations

from typing import ClassVar

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op

from pytensor_fuse._pytensor.graphs.features import (
    change_class,
    features_of,
    has_destroyers,
    told_of,
)


class Listener(Feature):
    """Notes what it hears."""

    def __init__(self):
        self.heard = []

    def on_import(self, fgraph, node, reason):
        self.heard.append("import")

    def on_prune(self, fgraph, node, reason):
        self.heard.append("prune")


@told_of("on_prune")
class DeafToImports(Listener):
    pass


def test_a_class_is_told_of_the_events_it_names():
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    everything, some = Listener(), DeafToImports()
    fgraph.attach_feature(everything)
    fgraph.attach_feature(some)
    assert list(features_of(fgraph))[-2:] == [everything, some]
    fgraph.replace(fgraph.outputs[0], pt.sin(x))
    assert everything.heard == ["import", "prune"]
    assert some.heard == ["prune"]


def test_a_feature_of_another_class_stays_where_it_is():
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    feature = Listener()
    fgraph.attach_feature(feature)
    changed = change_class(feature, DeafToImports)
    assert changed is feature
    assert type(features_of(fgraph)[-1]) is DeafToImports
    assert not vars(changed)


class Overwrite(Op):
    __props__ = ()
    destroy_map: ClassVar = {0: [0]}

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0]


def test_nodes_that_write_over_inputs_are_known_to_the_destroy_handler():
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    assert not has_destroyers(fgraph)
    fgraph.attach_feature(DestroyHandler())
    assert not has_destroyers(fgraph)
    fgraph.replace(fgraph.outputs[0], Overwrite()(pt.exp(x)))
    assert has_destroyers(fgraph)
