"""The time that merging takes in a compile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest import mock

from pytensor.compile.mode import Mode
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import MergeFeature, MergeOptimizer

from benchmarks.graphs.reference import Reference
from benchmarks.measuring.sides import compiled
from benchmarks.measuring.turns import frozen_heap
from pytensor_fuse._activation.passes.merging import MergeRewriter


def merging_seconds(reference: Reference, *, ours: bool, mode: Mode) -> float:
    """The time that merging takes in a compile: the passes, and what its feature does besides.

    The feature's callbacks are timed by PyTensor itself.
    """
    seconds = 0.0
    features: dict[MergeFeature, FunctionGraph] = {}
    depth = 0

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(rewriter: MergeOptimizer, fgraph: FunctionGraph) -> Any:
            nonlocal seconds, depth
            times = fgraph.execute_callbacks_times
            before = times.get(getattr(fgraph, "merge_feature", None), 0.0)
            depth += 1
            start = time.perf_counter()
            try:
                return function(rewriter, fgraph)
            finally:
                elapsed = time.perf_counter() - start
                depth -= 1
                if depth == 0:
                    # What the callbacks take within the pass is counted once.
                    within = times.get(fgraph.merge_feature, 0.0) - before
                    seconds += elapsed - within

        return run

    attach = FunctionGraph.attach_feature

    def attach_timed(fgraph: FunctionGraph, feature: Feature) -> None:
        nonlocal seconds
        if not isinstance(feature, MergeFeature):
            attach(fgraph, feature)
            return
        features[feature] = fgraph
        start = time.perf_counter()
        attach(fgraph, feature)
        seconds += time.perf_counter() - start

    with (
        mock.patch.object(MergeOptimizer, "apply", timed(MergeOptimizer.apply)),
        mock.patch.object(MergeRewriter, "apply", timed(MergeRewriter.apply)),
        mock.patch.object(FunctionGraph, "attach_feature", attach_timed),
        frozen_heap(),
    ):
        compiled(*reference.build(), ours=ours, mode=mode)
    return seconds + sum(
        fgraph.execute_callbacks_times[feature] for feature, fgraph in features.items()
    )
