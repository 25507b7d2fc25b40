"""What is remembered for ops that are alike is what PyTensor would say of each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import optdb
from pytensor.graph.features import ReplaceValidate
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    SequentialGraphRewriter,
    WalkingGraphRewriter,
    node_rewriter,
)
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot, Sum

from pytensor_fuse._accelerators.rewriter_loops.candidates import Candidates
from pytensor_fuse._accelerators.rewriter_loops.refusals import Refusals, refusals_of
from support.switching import switched

x, y = pt.matrices("x", "y")
v, s = pt.vector("v"), pt.scalar("s")

OUTPUTS = [
    pt.exp(x) + pt.log1p(y) * s - pt.sqr(x) / pt.switch(y > 0, x, y),
    pt.sum(x, axis=0) + pt.sum(x) + pt.max(x, axis=(0, 1)),
    (x @ y).T + x.dimshuffle(1, 0, "x")[:, :, 0],
    pt.linalg.cholesky(x) + pt.linalg.solve(x, y),
    pt.set_subtensor(v[1:], s) + v[::-1][0],
    pt.special.softmax(x, axis=1) + pt.sigmoid(y),
]
OPS: list[Any] = [
    *{id(a.owner.op): a.owner.op for a in ancestors(OUTPUTS) if a.owner is not None}.values(),
    # Equal to ops that rewriters track, and not.
    Elemwise(ps.exp),
    Elemwise(ps.exp, {0: 0}),
    Elemwise(ps.Exp(ps.upgrade_to_float, name="other")),
    Elemwise(ps.add, {0: 1}),
    Elemwise(ps.sqr),
    DimShuffle(input_ndim=2, new_order=(1, 0)),
    DimShuffle(input_ndim=2, new_order=("x", 0, 1)),
    Sum(axis=(1, 2)),
    Sum(axis=0),
    Dot(),
]


def passes(rewriter: Any) -> Iterator[Any]:
    """Iterate over the passes in a pass."""
    yield rewriter
    if isinstance(rewriter, SequentialGraphRewriter):
        for one in rewriter:
            yield from passes(one)
    elif isinstance(rewriter, EquilibriumGraphRewriter):
        for one in (
            *rewriter.global_rewriters,
            *rewriter.final_rewriters,
            *rewriter.cleanup_rewriters,
        ):
            yield from passes(one)


def all_passes() -> list[Any]:
    return list(passes(optdb.query(RewriteDatabaseQuery(include=["fast_run"]))))


@pytest.mark.parametrize("prefilters", [False, True])
def test_candidates(prefilters: bool) -> None:
    on = ["rewriter_loops", *(["prefilters"] if prefilters else [])]
    with switched(accelerators=on):
        trackers = [p.node_tracker for p in all_passes() if isinstance(p, EquilibriumGraphRewriter)]
        assert len(trackers) > 3
        for tracker in trackers:
            for ops in (OPS, OPS[::-1]):
                found = Candidates(tracker)
                for op in ops:
                    assert found.candidates(op) == found._new(op)
                    if not prefilters:
                        rewriters = [candidate[0] for candidate in found.candidates(op)]
                        assert rewriters == tracker._get_trackers(op)


def test_refusals() -> None:
    with switched(accelerators=["rewriter_loops"]):
        n_refused = n_kept = 0
        for one in all_passes():
            if type(one) is not WalkingGraphRewriter:
                continue
            refusals = refusals_of(one.node_rewriter)
            if not isinstance(refusals, Refusals):
                continue
            for op in (*OPS, *OPS[::-1]):
                refused = refusals.has(op)
                assert refused == refusals._refuses(op)
                n_refused += refused
                n_kept += not refused
        assert n_refused
        assert n_kept


class _Counting(WalkingGraphRewriter):
    """Notes when it lets something listen."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.n_attached = 0

    def attach_updater(self, *args: Any, **kwargs: Any) -> Any:
        self.n_attached += 1
        return super().attach_updater(*args, **kwargs)


def seen_features(pass_class: type, tracks: list[Any]) -> tuple[Any, list[int], int]:
    """Run a pass; return it, how many features each try saw, and how many were attached."""
    fgraph = FunctionGraph([x], [pt.exp(pt.sin(x))], clone=True, features=[ReplaceValidate()])
    n_attached = 0
    attach = fgraph.attach_feature

    def attach_feature(feature: Any) -> None:
        nonlocal n_attached
        n_attached += not isinstance(feature, ReplaceValidate)
        attach(feature)

    fgraph.attach_feature = attach_feature  # type: ignore[method-assign]
    seen = []

    @node_rewriter(tracks)
    def look(fgraph: FunctionGraph, node: Any) -> None:
        seen.append(len(fgraph._features))

    rewriter = pass_class(look, order="in_to_out")
    rewriter.apply(fgraph)
    assert len(fgraph._features) == 1
    return rewriter, seen, n_attached


def test_nothing_listens_where_nothing_is_tried() -> None:
    with switched(accelerators=["rewriter_loops"]):
        assert seen_features(WalkingGraphRewriter, [Dot])[1:] == ([], 0)
        assert seen_features(WalkingGraphRewriter, [Elemwise])[1:] == ([2, 2], 1)
        # Whoever has a method for it is asked each time.
        rewriter, *seen = seen_features(_Counting, [Dot])
        assert seen == [[], 1]
        assert rewriter.n_attached == 1
    with switched(accelerators=False):
        assert seen_features(WalkingGraphRewriter, [Elemwise])[1:] == ([2, 2], 1)
