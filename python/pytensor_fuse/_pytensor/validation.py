"""The question whether a graph may be run, asked of what the answer depends on."""

from __future__ import annotations

from typing import Any

from pytensor.compile.aliasing import Supervisor
from pytensor.configdefaults import config
from pytensor.graph import destroyhandler
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.utils import InconsistencyError

_stock_on_validate: Any = Supervisor.on_validate
_stock_destroyers = DestroyHandler.destroyers
_stock_contains_cycle: Any = destroyhandler._contains_cycle


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

    Depth first over the nodes alone, without the variables between them: a cycle is where a node is
    met again before all that it waits for has been passed. Where there is one, and where something
    is not in the graph that a node waits for, so that it waits forever, PyTensor's own looks again.

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
    nodes = fgraph.apply_nodes
    passed: set[Any] = set()
    entered: set[Any] = set()
    for start in nodes:
        if start in passed:
            continue
        stack = [start]
        while stack:
            node = stack[-1]
            if node in passed:
                stack.pop()
                continue
            if node in entered:
                # All that it waits for has been passed.
                stack.pop()
                entered.remove(node)
                passed.add(node)
                continue
            entered.add(node)
            for variable in node.inputs:
                owner = variable.owner
                if owner is not None and owner not in passed:
                    if owner in entered or owner not in nodes:
                        return bool(_stock_contains_cycle(fgraph, orderings))
                    stack.append(owner)
            for owner in orderings.get(node, ()):
                if owner not in passed:
                    if owner in entered or owner not in nodes:
                        return bool(_stock_contains_cycle(fgraph, orderings))
                    stack.append(owner)
    return False
