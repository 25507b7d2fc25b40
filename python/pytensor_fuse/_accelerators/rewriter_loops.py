"""Rewriter loops: no method calls and no hashes between the loop and a node rewriter.

Over 95 % of the node rewriters that a compilation tries on a node decline at once, so that the
overhead around a try counts as much as the try itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    FromFunctionNodeRewriter,
    NodeProcessingGraphRewriter,
    WalkingGraphRewriter,
)

from pytensor_fuse._pytensor import rewriter_loops
from pytensor_fuse._pytensor.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return Together(
        [
            DropIn(FromFunctionNodeRewriter, "transform", rewriter_loops.transform_tracked),
            DropIn(NodeProcessingGraphRewriter, "process_node", rewriter_loops.process_node),
            DropIn(WalkingGraphRewriter, "apply", rewriter_loops.walk),
            DropIn(EquilibriumGraphRewriter, "apply", rewriter_loops.reach_equilibrium),
        ]
    )
