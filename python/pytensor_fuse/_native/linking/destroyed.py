"""Inputs of a graph that its nodes overwrite."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor_fuse._native.lowering.types import Node, Variable, Variables


def destroyed_inputs(inputs: Variables, nodes: Iterable[Node]) -> list[int]:
    """Return the positions of the inputs that nodes overwrite, themselves or through views.

    Parameters
    ----------
    inputs
        The inputs of the graph.
    nodes
        Its nodes in topological order.
    """
    positions = {variable: position for position, variable in enumerate(inputs)}
    roots: dict[Variable, Variable] = {}
    found: set[int] = set()
    for node in nodes:
        for outs in node.op.destroy_map.values():
            for place in outs:
                given = node.inputs[place]
                root = roots.get(given, given)
                if root in positions:
                    found.add(positions[root])
        for views in (node.op.view_map, node.op.destroy_map):
            for out, places in views.items():
                for place in places:
                    given = node.inputs[place]
                    roots[node.outputs[out]] = roots.get(given, given)
    return sorted(found)
