"""The question whether a graph may be run, asked of what the answer depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.compile.aliasing import Supervisor
from pytensor.configdefaults import config
from pytensor.graph import destroyhandler
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.utils import InconsistencyError

from pytensor_fuse._pytensor.graphs.positions import node_positions
from pytensor_fuse._pytensor.patching.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch

_stock_on_validate: Any = Supervisor.on_validate
_stock_destroyers = DestroyHandler.destroyers


def on_validate(self: Any, fgraph: Any) -> Any:
    """Do as `Supervisor.on_validate`: who destroys what is asked once, not for each variable."""
    handler = fgraph._feature_methods.get("destroyers")
    if (
        handler is None
        or type(handler).destroyers is not _stock_destroyers
        or "destroyers" in vars(handler)
        or "destroyers" in vars(fgraph)
        or config.cycle_detection == "fast"
    ):
        return _stock_on_validate(self, fgraph)
    protected = self.protected + list(fgraph.outputs)
    if protected:
        droot, _, root_destroyer = handler.refresh_droot_impact()
        if droot:
            for r in protected:
                if r in droot and droot[r] in root_destroyer:
                    raise InconsistencyError(f"Trying to destroy a protected variable: {r}")
    return None


def contains_cycle(fgraph: Any, orderings: Any) -> bool:
    """Do as `_contains_cycle`.

    PyTensor visits whatever no longer waits for anything, and says that there is a cycle if not all
    is visited: just where there is no order of the nodes.

    Parameters
    ----------
    fgraph
        The graph.
    orderings
        Nodes that are to run before a node, by node.

    Notes
    -----
    O(nodes + edges).
    """
    return node_positions(fgraph, orderings) is None


def patch() -> Patch:
    """Return the patch."""
    return Together(
        DropIn(Supervisor, "on_validate", on_validate),
        DropIn(destroyhandler, "_contains_cycle", contains_cycle),
    )
