"""Queries: the passes of a mode are copied from a cached answer instead of made for each graph."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, Has, does

ACCELERATOR: Final = Accelerator(
    title="the passes of a mode are made once, and copied for each graph",
    replaces="optdb.query",
    skips=(
        "passes made anew for each graph, and for each inner graph, as long as no rewriter is "
        "registered: each query gets a copy"
    ),
    ground=(
        Has("pytensor.compile.mode:optdb", "__db__"),
        Does("pytensor.misc.ordered_set:OrderedSet.__iter__"),
        *does("pytensor.graph.rewriting.db:RewriteDatabase", "__query__ query"),
        Does("pytensor.graph.rewriting.db:SequenceDB.query"),
        Does("pytensor.graph.rewriting.db:EquilibriumDB.query"),
        Does("pytensor.graph.rewriting.db:LocalGroupDB.query"),
        Does("pytensor.graph.rewriting.db:TopoDB.query"),
        Does("pytensor.graph.rewriting.db:ProxyDB.query"),
        Does("pytensor.graph.rewriting.db:RewriteDatabaseQuery.__init__"),
        Does("pytensor.graph.rewriting.basic:SequentialGraphRewriter.apply"),
        Does("pytensor.graph.rewriting.basic:EquilibriumGraphRewriter.__init__"),
        Does("pytensor.graph.rewriting.basic:WalkingGraphRewriter.__init__"),
        Does("pytensor.graph.rewriting.basic:NodeProcessingGraphRewriter.__init__"),
        Does("pytensor.graph.rewriting.basic:SequentialNodeRewriter.__init__"),
        *does(
            "pytensor.graph.rewriting.basic:OpToRewriterTracker",
            "__init__ add_tracker _get_trackers",
        ),
        Has("pytensor.scan.rewriting.db", "ScanEquilibriumGraphRewriter"),
    ),
    gain=Gain(1.06, "radon"),
)
