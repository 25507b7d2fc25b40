"""The loops of passes that try node rewriters on nodes, as PyTensor has them, with less overhead.

These functions do as the methods of the same names in `pytensor.graph.rewriting.basic` do: the same
node rewriters on the same nodes in the same order, and the same profile. They leave out the costly
parts: a method between the loop and the rewriter, the hash of an op each time it is looked up, and
that of a rewriter, which is a Python function, each time its seconds are added; and the order of
the nodes of a graph that has not changed since it was last computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    FromFunctionNodeRewriter,
    NodeProcessingGraphRewriter,
    WalkingGraphRewriter,
)

from pytensor_fuse._accelerators.rewriter_loops.equilibrium import reach_equilibrium
from pytensor_fuse._accelerators.rewriter_loops.node_rewriters import (
    process_node,
    transform_tracked,
)
from pytensor_fuse._accelerators.rewriter_loops.walking import walk
from pytensor_fuse._pytensor.patching.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return Together(
        DropIn(FromFunctionNodeRewriter, "transform", transform_tracked),
        DropIn(NodeProcessingGraphRewriter, "process_node", process_node),
        DropIn(WalkingGraphRewriter, "apply", walk),
        DropIn(EquilibriumGraphRewriter, "apply", reach_equilibrium),
    )
