"""Positions of the nodes of a graph: each node follows all nodes that it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytensor.graph.basic import Apply

    Node = Apply[Any]


def node_positions(fgraph: Any, orderings: Mapping[Node, set[Node]]) -> dict[Node, float] | None:
    """Return a position for each node, after the positions of all nodes that it waits for.

    A depth-first search over nodes, without the variables between them. A node that is met again
    before all that it waits for has a position lies on a cycle.

    Parameters
    ----------
    fgraph
        The graph.
    orderings
        For each node, the nodes that must run before it.

    Returns
    -------
    dict or None
        None if there is no such order: on a cycle, or if a node waits for something that is not in
        the graph.

    Notes
    -----
    O(nodes + edges).
    """
    nodes = fgraph.apply_nodes
    of: dict[Node, float] = {}
    entered: set[Node] = set()
    for start in nodes:
        if start in of:
            continue
        stack = [start]
        while stack:
            node = stack[-1]
            if node in of:
                stack.pop()
                continue
            if node in entered:
                # All nodes that it waits for have positions.
                stack.pop()
                of[node] = float(len(of))
                continue
            entered.add(node)
            for variable in node.inputs:
                owner = variable.owner
                if owner is not None and owner not in of:
                    if owner in entered or owner not in nodes:
                        return None
                    stack.append(owner)
            for owner in orderings.get(node, ()):
                if owner not in of:
                    if owner in entered or owner not in nodes:
                        return None
                    stack.append(owner)
    return of
