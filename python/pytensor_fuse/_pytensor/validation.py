"""The question whether a graph may be run, asked of what the answer depends on."""

from __future__ import annotations

from typing import Any

from pytensor.compile.aliasing import Supervisor
from pytensor.configdefaults import config
from pytensor.graph import destroyhandler
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.utils import InconsistencyError

_stock_on_validate = Supervisor.on_validate
_stock_destroyers = DestroyHandler.destroyers
_stock_contains_cycle = destroyhandler._contains_cycle


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

    Kahn's algorithm over the nodes alone, without the variables between them. Where it does not
    come to an end, PyTensor's own looks again: a node that is ordered after one that is not in the
    graph waits forever, too.

    Parameters
    ----------
    fgraph
        The graph.
    orderings
        Nodes that are to run before a node, by node.
    """
    waits_for: dict[Any, int] = {}
    readers: dict[Any, list[Any]] = {}
    ready = []
    for node in fgraph.apply_nodes:
        parents = [owner for v in node.inputs if (owner := v.owner) is not None]
        before = orderings.get(node)
        if before:
            parents.extend(before)
        if parents:
            waits_for[node] = len(parents)
            for parent in parents:
                found = readers.get(parent)
                if found is None:
                    readers[parent] = [node]
                else:
                    found.append(node)
        else:
            ready.append(node)
    n_waiting = len(waits_for)
    while ready:
        for node in readers.get(ready.pop(), ()):
            left = waits_for[node] - 1
            waits_for[node] = left
            if not left:
                n_waiting -= 1
                ready.append(node)
    return bool(n_waiting) and bool(_stock_contains_cycle(fgraph, orderings))
