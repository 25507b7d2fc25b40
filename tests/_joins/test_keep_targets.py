"""PyTensor's rewriter keeps the inputs of a kernel that are there to be written over."""

import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import Composite, float64
from pytensor.tensor.rewriting.elemwise import local_useless_composite_outputs

import pytensor_fuse
from pytensor_fuse._joins.ops.elemwise import WriteElemwise


def composite(inplace):
    x, unread = float64(), float64()
    op = WriteElemwise(Composite([x, unread], [x * 2.0, x + 1.0]), inplace)
    v, target = pt.vectors("v", "target")
    return v, target, op.make_node(v, target)


def rewritten(fgraph, node):
    new = local_useless_composite_outputs.transform(fgraph, node)
    return next(iter(new.values())).owner if isinstance(new, dict) else new


def test_inputs_that_are_written_over_are_useful():
    v, target, node = composite({1: 1})
    fgraph = FunctionGraph([v, target], [node.outputs[1]], clone=False)
    with pytensor_fuse.enabled():
        new = rewritten(fgraph, node)
        assert new.inputs == [v, target]
        assert new.op.inplace_pattern == {0: 1}
        assert type(new.op) is WriteElemwise
        assert len(new.outputs) == 1
        again = FunctionGraph([v, target], new.outputs, clone=False)
        assert not local_useless_composite_outputs.transform(again, new)


def test_inputs_that_nothing_uses_are_still_removed():
    for inplace in ({}, {0: 1}):
        v, target, node = composite(inplace)
        fgraph = FunctionGraph([v, target], [node.outputs[1]], clone=False)
        with pytensor_fuse.enabled():
            new = rewritten(fgraph, node)
        assert new.inputs == [v]
        assert new.op.inplace_pattern == {}


def test_stock_rewriter_is_given_back():
    with pytensor_fuse.enabled(False):
        stock = type(local_useless_composite_outputs)
        with pytensor_fuse.enabled():
            assert type(local_useless_composite_outputs) is not stock
        assert type(local_useless_composite_outputs) is stock
