"""Edits of a FunctionGraph in one step: many nodes replaced at once, and undone if refused."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytensor.configdefaults import config
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph, Output

from pytensor_fuse._core import remove_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.basic import Apply, Variable


def replace_all(
    fgraph: FunctionGraph,
    new_nodes: Sequence[Apply[Any]],
    replacements: Sequence[tuple[Variable[Any, Any], Variable[Any, Any]]],
    old_nodes: Sequence[Apply[Any]],
    reason: str,
    *,
    validate: bool = True,
    tell: Listeners | None = None,
) -> None:
    """Replace ``old_nodes`` by ``new_nodes`` in one edit.

    `FunctionGraph.replace` edits one variable at a time. Each import then copies the set of all
    variables, and each pruned node is searched for in the client lists of its inputs, which is
    quadratic where many nodes read one variable. Here all new nodes are imported first, then the
    remaining clients are moved, then the old nodes are removed together; features receive the same
    events as usual. New nodes read no old result, so no old node can return, whatever the order of
    the replacements.

    Parameters
    ----------
    fgraph
        The graph.
    new_nodes
        In topological order.
    replacements
        Each result of an old node that is read elsewhere or is an output of the graph, and its
        replacement, of the same type or a more specific one. Constants may be replaced, too.
    old_nodes
        In topological order. After the replacements, nothing else reads their results.
    reason
        Passed to the features of the graph.
    validate
        Whether features may refuse the result.
    tell
        The listeners of ``fgraph``, if they are known.

    Raises
    ------
    Exception
        Any exception of a feature of the graph; the graph is then as it was before.
    """
    if tell is None:
        tell = Listeners(fgraph)
    dying = set(old_nodes)
    imported: list[Apply[Any]] = []
    moved: list[tuple[Apply[Any], int, Variable[Any, Any]]] = []
    pruned: dict[Apply[Any], None] = {}
    try:
        for node in new_nodes:
            imported.append(node)
            import_node(fgraph, tell, node, reason)
        for old, new in replacements:
            for client, position in list(fgraph.clients[old]):
                if client not in dying:
                    moved.append((client, position, old))
                    move_client(fgraph, tell, client, position, new, reason)
        prune_nodes(fgraph, tell, old_nodes, reason, pruned)
        if validate:
            fgraph.validate()
    except BaseException:
        # A feature that failed may fail again. Each step changes the graph before it notifies the
        # features, so the graph is restored whatever they do. The first failure is reported.
        reason = f"revert {reason}"
        for node in reversed(pruned):
            with suppress(Exception):
                import_node(fgraph, tell, node, reason)
        for client, position, old in reversed(moved):
            with suppress(Exception):
                move_client(fgraph, tell, client, position, old, reason)
        for node in reversed(imported):
            with suppress(Exception):
                prune_nodes(fgraph, tell, [node], reason, {})
            for result in node.outputs:
                del fgraph.clients[result]
        raise
    fgraph.variables.difference_update(old for old, _ in replacements if old.owner is None)


class Listeners:
    """The features of a graph that handle an event, by event.

    `FunctionGraph.execute_callbacks` also calls features that inherit an empty method, and measures
    the time of each call, which is most of the time if the graph is not profiled. The feature
    ``but`` is left out where possible.
    """

    def __init__(self, fgraph: FunctionGraph, but: Feature | None = None) -> None:
        self._fgraph = fgraph
        self._but = but
        self._features = list(fgraph._features)
        self._profile = fgraph.profile

    def are_current(self) -> bool:
        """Whether the graph still has the same features."""
        fgraph = self._fgraph
        return self._features == fgraph._features and self._profile is fgraph.profile

    def _of(self, event: str) -> list[Callable[..., object]]:
        fgraph = self._fgraph
        if self._profile or type(fgraph).execute_callbacks is not FunctionGraph.execute_callbacks:
            return [lambda _, *args, **kwargs: fgraph.execute_callbacks(event, *args, **kwargs)]
        silent = getattr(Feature, event)
        methods = [
            getattr(feature, event)
            for feature in self._features
            if event in type(feature)._feature_callbacks and feature is not self._but
        ]
        return [method for method in methods if getattr(method, "__func__", None) is not silent]

    @cached_property
    def on_import(self) -> list[Callable[..., object]]:
        return self._of("on_import")

    @cached_property
    def on_change_input(self) -> list[Callable[..., object]]:
        return self._of("on_change_input")

    @cached_property
    def on_prune(self) -> list[Callable[..., object]]:
        return self._of("on_prune")


def import_node(fgraph: FunctionGraph, tell: Listeners, node: Apply[Any], reason: str) -> None:
    """Add ``node``, whose inputs are in ``fgraph``, to it."""
    fgraph.apply_nodes.add(node)
    vars(node.tag).setdefault("imported_by", []).append(reason)
    for result in node.outputs:
        fgraph.clients.setdefault(result, [])
        fgraph.variables.add(result)
    for position, variable in enumerate(node.inputs):
        fgraph.clients[variable].append((node, position))
    for listen in tell.on_import:
        listen(fgraph, node, reason)


def move_client(
    fgraph: FunctionGraph,
    tell: Listeners,
    client: Apply[Any],
    position: int,
    new: Variable[Any, Any],
    reason: str,
) -> None:
    """Let ``client`` read ``new``, which is in ``fgraph``; its previous input stays there."""
    old = client.inputs[position]
    client.inputs[position] = new
    if isinstance(client.op, Output):
        fgraph.outputs[client.op.idx] = new
    fgraph.clients[new].append((client, position))
    readers = fgraph.clients[old]
    if not remove_reader(readers, client, position):
        readers.remove((client, position))
    for listen in tell.on_change_input:
        listen(fgraph, client, position, old, new, reason=reason)


def prune_nodes(
    fgraph: FunctionGraph,
    tell: Listeners,
    nodes: Sequence[Apply[Any]],
    reason: str,
    removed: dict[Apply[Any], None],
) -> None:
    """Remove ``nodes``, whose results only other nodes among them read; sinks first.

    Their inputs from elsewhere must have other clients. Removed nodes are added to ``removed``,
    even if a feature fails.
    """
    read: dict[Variable[Any, Any], None] = {}
    try:
        for node in reversed(nodes):
            removed[node] = None
            read.update(dict.fromkeys(node.inputs))
            vars(node.tag).setdefault("removed_by", []).append(reason)
            fgraph.apply_nodes.remove(node)
            fgraph.variables.difference_update(node.outputs)
            for listen in tell.on_prune:
                listen(fgraph, node, reason)
    finally:
        for variable in read:
            clients = fgraph.clients[variable]
            clients[:] = [client for client in clients if client[0] not in removed]


def report(
    replacements: Sequence[tuple[Variable[Any, Any], Variable[Any, Any]]], reason: str
) -> None:
    """Print the replacements if PyTensor's options ask rewriters to do so."""
    if config.optimizer_verbose and reason not in config.optimizer_verbose_ignore.split(","):
        for old, new in replacements:
            line = f"rewriting: {reason} replaces {old} of {old.owner} with {new} of {new.owner}"
            print(line)  # noqa: T201 - PyTensor prints it, and its option asks for it
