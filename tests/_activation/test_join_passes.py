"""Data that the passes over joins exchange belong to one graph."""

import copy
import gc
import pickle
import weakref

import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph

from pytensor_fuse._activation.passes.joins import (
    JoinBufferElimination,
    JoinContext,
    JoinsKept,
    ReuseAsked,
    TargetKnown,
)
from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.reports import explain_joins
from pytensor_fuse._joins.thresholds import Thresholds


def graph(length=None):
    x = pt.tensor("x", dtype="float64", shape=(length,))
    return FunctionGraph([x], [pt.concatenate([x * 2, x + 1])])


def test_what_is_noted_is_taken_once():
    context, fgraph, other = JoinContext(), graph(), graph()
    TargetKnown(context, "numba").apply(fgraph)
    ReuseAsked(context).apply(fgraph)
    assert not context.take_reuse(other)
    assert context.take_target(other) == "python"
    assert context.take_reuse(fgraph)
    assert not context.take_reuse(fgraph)
    assert context.take_target(fgraph) == "numba"
    assert context.take_target(fgraph) == "python"


def test_graphs_are_not_kept():
    context, fgraph = JoinContext(), graph()
    context.note_target(fgraph, "c")
    context.note_reuse(fgraph)
    gone = weakref.ref(fgraph)
    del fgraph
    gc.collect()
    assert gone() is None


def test_copies_share_a_context_of_their_own():
    context = JoinContext(Thresholds(min_elements=7))
    context.note_reuse(graph())
    passes = [TargetKnown(context, "c"), JoinsKept(context)]
    for known, kept in (copy.deepcopy(passes), pickle.loads(pickle.dumps(passes))):
        assert known.context is kept.context
        assert known.context is not context
        assert known.context.thresholds == context.thresholds


def test_the_pass_decides_by_the_thresholds_of_its_context():
    for thresholds, reason in (
        (Thresholds(min_written_in_python=0), JoinReason.WRITTEN),
        (Thresholds(), JoinReason.FEW),
        (Thresholds(min_elements=2001), JoinReason.SMALL),
    ):
        fgraph = graph(1000)
        JoinBufferElimination(JoinContext(thresholds)).rewrite(fgraph)
        assert [report.reason for report in explain_joins(fgraph)] == [reason]
