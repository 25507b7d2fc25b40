"""Rewriter loops: no method calls and no hashes between the loop and a node rewriter.

Over 95 % of the node rewriters that a compilation tries on a node decline at once, so that the
overhead around a try counts as much as the try itself.
"""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, Keeps

ACCELERATOR: Final = Accelerator(
    title="passes try node rewriters one after another in a tight loop",
    replaces=(
        "apply of EquilibriumGraphRewriter and WalkingGraphRewriter, process_node, and "
        "FromFunctionNodeRewriter.transform"
    ),
    skips=(
        "the methods between a loop and the function that it tries; hashes of ops and "
        "rewriters; walks of passes for whose ops there is no node, with their listeners, "
        "until something is tried; the order and the ops of an unchanged graph, computed "
        "again. The rewriters for an op are looked up once for each class of ops, and for "
        "Elemwise once for each class of scalar ops"
    ),
    ground=(
        Keeps("pytensor.tensor.elemwise:Elemwise", "scalar_op"),
        Does("pytensor.graph.rewriting.basic:EquilibriumGraphRewriter.apply"),
        Does("pytensor.graph.rewriting.basic:WalkingGraphRewriter.apply"),
        Does("pytensor.graph.rewriting.basic:NodeProcessingGraphRewriter.process_node"),
        Does("pytensor.graph.rewriting.basic:FromFunctionNodeRewriter.transform"),
        Does("pytensor.graph.rewriting.basic:SequentialNodeRewriter.transform"),
        Does("pytensor.graph.rewriting.basic:OpToRewriterTracker._get_trackers"),
    ),
    gain=Gain(1.87, "deep(400)"),
)
