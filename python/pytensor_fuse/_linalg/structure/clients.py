"""The nodes of a graph that read a matrix, its transposes, or what a view of it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor_fuse._linalg.structure.matrices import transpose_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


def clients_of(fgraph: FunctionGraph, variable: Any) -> Iterator[tuple[Apply[Any], int]]:
    """Iterate over the nodes that read a variable, and the places in their inputs."""
    for client, at in fgraph.clients[variable]:
        if client.outputs:
            yield client, at


def is_output(fgraph: FunctionGraph, variable: Any) -> bool:
    """Whether a variable is an output of a graph."""
    return any(not client.outputs for client, _ in fgraph.clients[variable])


def last_first(fgraph: FunctionGraph, replacements: dict[Any, Any]) -> dict[Any, Any]:
    """Sort replacements, last nodes first, so that none restores a node that another removed."""
    if len(replacements) < 2:
        return replacements
    places = {node: i for i, node in enumerate(fgraph.toposort())}
    return dict(sorted(replacements.items(), key=lambda pair: -places[pair[0].owner]))


def views_of(
    fgraph: FunctionGraph, matrix: Any, viewed: Callable[[Any], Any] = transpose_of
) -> list[Any]:
    """Return a matrix and the variables of a graph that are its transposes.

    Parameters
    ----------
    fgraph, matrix
        The graph, and the matrix, which comes first.
    viewed
        Returns the matrix that a variable is a view of; None for other variables.
    """
    views = [matrix]
    for view in views:
        views.extend(
            client.outputs[0]
            for client, _ in clients_of(fgraph, view)
            if viewed(client.outputs[0]) is view
        )
    return views
