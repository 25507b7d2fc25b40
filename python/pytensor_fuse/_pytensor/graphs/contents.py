"""Exchanging all contents of a FunctionGraph in one step, and the order in which its nodes run."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pytensor.compile.aliasing import Supervisor
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import Feature, PreserveVariableAttributes, ReplaceValidate
from pytensor.graph.fg import Output

from pytensor_fuse._pytensor.graphs.features import told_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph

# Features that a function's maker attaches before rewriting. None of them stores nodes.
_OF_MAKERS: Final = (ReplaceValidate, Supervisor, PreserveVariableAttributes)


def foreign_feature(fgraph: FunctionGraph) -> str | None:
    """Return the name of a feature that no maker attaches by itself; None if there is none."""
    for feature in fgraph._features:
        if type(feature) not in _OF_MAKERS:
            return type(feature).__name__
    return None


def remove_foreign_features(fgraph: FunctionGraph) -> None:
    """Remove all features that no maker attaches by itself."""
    for feature in list(fgraph._features):
        if type(feature) not in _OF_MAKERS:
            fgraph.remove_feature(feature)


def has_destroy_handler(fgraph: FunctionGraph) -> bool:
    """Whether PyTensor's own destroy handler, and no other, is attached to ``fgraph``."""
    return type(getattr(fgraph, "destroy_handler", None)) is DestroyHandler


def exchange_contents(
    fgraph: FunctionGraph,
    nodes: Sequence[Apply[Any]],
    outputs: Sequence[Variable[Any, Any]],
    *,
    watch: bool,
) -> None:
    """Replace the nodes of ``fgraph`` by others, which compute its outputs from its inputs.

    No feature is notified: those that a maker attaches store no nodes. The resulting graph is as if
    its nodes had been imported in their order; O(nodes + edges).

    Parameters
    ----------
    fgraph
        A graph that has only features of makers (see `foreign_feature`).
    nodes
        The new nodes, in the order in which they are to run, which is topological; all of them are
        needed for ``outputs``. The graph keeps this order until it is changed.
    outputs
        The new outputs, with the same number and types as the current ones.
    watch
        Whether to attach a destroy handler.
    """
    clients: dict[Variable[Any, Any], list[tuple[Apply[Any], int]]]
    clients = {variable: [] for variable in fgraph.inputs}
    variables: set[Variable[Any, Any]] = set()
    for node in nodes:
        for position, variable in enumerate(node.inputs):
            clients.setdefault(variable, []).append((node, position))
        variables.update(node.inputs)
        variables.update(node.outputs)
        for variable in node.outputs:
            clients[variable] = []
    variables.update(outputs)
    for index, variable in enumerate(outputs):
        clients.setdefault(variable, []).append((Output(index).make_node(variable), 0))
    fgraph.clients = clients
    fgraph.variables = variables
    fgraph.apply_nodes = set(nodes)
    fgraph.outputs[:] = outputs
    if watch:
        fgraph.attach_feature(DestroyHandler())
    if any(node.op.destroy_map for node in nodes) and fgraph.toposort() != list(nodes):
        # Without it, the order is free where a node that overwrites an input waits for several
        # others.
        fgraph.attach_feature(KeptOrder(nodes))


@told_of("orderings", "on_import", "on_prune", "on_change_input")
class KeptOrder(Feature):
    """Makes the nodes of a graph run in a given order, until the graph is changed.

    Parameters
    ----------
    nodes
        All nodes of the graph, in that order.
    """

    def __init__(self, nodes: Sequence[Apply[Any]]) -> None:
        self._before: dict[Apply[Any], list[Apply[Any]]] = {
            later: [each] for each, later in pairwise(nodes)
        }

    def orderings(self, fgraph: FunctionGraph) -> dict[Apply[Any], list[Apply[Any]]]:
        """Return for each node the one before it."""
        return self._before

    def _forget(self, *args: Any, **kwargs: Any) -> None:
        self._before = {}

    on_import = on_prune = on_change_input = _forget

    def clone(self) -> Feature:
        """Return the feature of a copy of the graph, which has other nodes."""
        return KeptOrder(())

    def __deepcopy__(self, memo: object) -> Feature:
        return KeptOrder(())

    def __reduce__(self) -> tuple[type[Feature], tuple[()]]:
        # A program that unpickles a graph may lack this package.
        return Feature, ()
