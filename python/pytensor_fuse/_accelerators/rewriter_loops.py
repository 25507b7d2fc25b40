"""The loops that try node rewriters on nodes: no method between loop and rewriter, no hashes.

Most tries end at once: over 95 % of the node rewriters that a compile tries on a node decline. What
is around each try counts as much as the try.
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
