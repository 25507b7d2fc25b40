"""Cycle detection in graphs whose nodes overwrite their inputs.

Once a node works in place, PyTensor searches the whole graph for a cycle after each replacement.
Here each node has a position: there is no cycle as long as each node comes after all nodes that it
waits for. Only changes since the last check are compared: a new node gets a position between its
predecessors and its clients, and the positions of nodes with changed inputs are compared with those
of the inputs. If that fails, all nodes get new positions.

This is an order maintained under edits, as in Pearce and Kelly, "A dynamic topological sort
algorithm for directed acyclic graphs" (2007), without the local reordering: a node that takes the
place of another fits in where that was, which is nearly all that happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph import destroyhandler
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.fg import Output
from pytensor.graph.utils import InconsistencyError

from pytensor_fuse._pytensor.compat.packages import does_as
from pytensor_fuse._pytensor.graphs.positions import node_positions
from pytensor_fuse._pytensor.patching.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply

    Node = Apply[Any]
    from pytensor_fuse._pytensor.patching.patches import Patch

_stock_on_import: Any = DestroyHandler.on_import
_stock_on_prune: Any = DestroyHandler.on_prune
_stock_on_change_input: Any = DestroyHandler.on_change_input
_stock_on_validate: Any = DestroyHandler.on_validate
_stock_contains_cycle: Any = destroyhandler._contains_cycle

# The attribute of handlers that holds their positions.
_POSITIONS = "_pytensor_fuse_positions"


class _Time:
    """The start of a period in which all events are received."""


_now = _Time()


def forget() -> None:
    """Discard all positions."""
    global _now
    _now = _Time()


class _Positions:
    """Positions of the nodes of a graph when they were last complete.

    Attributes
    ----------
    since
        When they were made.
    of
        By node: above those of all that it waits for, but for nodes that are in ``changed``, and
        what nodes wait for because others overwrite what they read.
    changed
        The nodes that came, and those whose inputs changed, since then.
    """

    __slots__ = ("changed", "of", "since")

    def __init__(self) -> None:
        self.since: _Time | None = None
        self.of: dict[Node, float] = {}
        self.changed: list[Node] = []

    def __reduce__(self) -> Any:
        # Copies of a graph find out for themselves.
        return _Positions, ()


def on_import(self: Any, fgraph: Any, app: Node, reason: Any) -> None:
    """Do as `DestroyHandler.on_import`, and note that the node came."""
    positions = self.__dict__.get(_POSITIONS)
    if positions is not None:
        positions.changed.append(app)
    op = app.op
    if self.algo == "fast" or op.view_map or op.destroy_map or app in self.debug_all_apps:
        _stock_on_import(self, fgraph, app, reason)
        return
    self.debug_all_apps.add(app)
    clients = self.clients
    for variable in app.inputs:
        readers = clients.get(variable)
        if readers is None:
            clients[variable] = {app: 1}
        else:
            readers[app] = readers.get(app, 0) + 1
    for variable in app.outputs:
        if variable not in clients:
            clients[variable] = {}
    self.stale_droot = True


def on_prune(self: Any, fgraph: Any, app: Node, reason: Any) -> None:
    """Do as `DestroyHandler.on_prune`, and forget the position of the node."""
    positions = self.__dict__.get(_POSITIONS)
    if positions is not None:
        positions.of.pop(app, None)
    _stock_on_prune(self, fgraph, app, reason)


def on_change_input(
    self: Any, fgraph: Any, app: Node, i: int, old_r: Any, new_r: Any, reason: Any
) -> None:
    """Do as `DestroyHandler.on_change_input`, and note that the node reads something else."""
    positions = self.__dict__.get(_POSITIONS)
    if positions is not None:
        positions.changed.append(app)
    _stock_on_change_input(self, fgraph, app, i, old_r, new_r, reason)


def on_validate(self: Any, fgraph: Any) -> bool:
    """Do as `DestroyHandler.on_validate`.

    Notes
    -----
    Takes time in proportion to what has changed, and to what waits for others because it overwrites
    what they read; in proportion to the graph where a new order is needed.
    """
    if not self._destroying_apps or self.algo == "fast":
        positions = self.__dict__.get(_POSITIONS)
        if positions is not None and len(positions.changed) > 64 + 4 * len(fgraph.apply_nodes):
            del self.__dict__[_POSITIONS]
        found: bool = _stock_on_validate(self, fgraph)
        return found
    orderings = self.orderings(fgraph, ordered=False)
    positions = self.__dict__.get(_POSITIONS)
    if positions is None:
        positions = self.__dict__[_POSITIONS] = _Positions()
    if positions.since is _now and _fits(positions, fgraph, orderings):
        return True
    order = node_positions(fgraph, orderings)
    if order is None and _is_confirmed(fgraph, orderings):
        raise InconsistencyError("Dependency graph contains cycles")
    positions.since = None if order is None else _now
    positions.of = {} if order is None else order
    positions.changed = []
    return True


def _is_confirmed(fgraph: Any, orderings: dict[Node, set[Node]]) -> bool:
    """Whether a graph without an order of its nodes has a cycle, by whoever is asked for that.

    PyTensor's own function would go through the graph, and say that it has.
    """
    function: Any = destroyhandler._contains_cycle
    return does_as(function, _stock_contains_cycle) or bool(function(fgraph, orderings))


def _fits(positions: _Positions, fgraph: Any, orderings: dict[Node, set[Node]]) -> bool:
    """Whether the order can stay, with places for the nodes that came; if so they have them.

    Where it says no, what has changed stays noted, and positions that were given can stay.
    """
    nodes = fgraph.apply_nodes
    clients = fgraph.clients
    of = positions.of
    for node in positions.changed:
        if isinstance(node.op, Output) or node not in nodes:
            continue
        low = -1.0
        for variable in node.inputs:
            owner = variable.owner
            if owner is not None:
                position = of.get(owner)
                if position is None:
                    return False
                if position > low:
                    low = position
        own = of.get(node)
        if own is not None:
            if own <= low:
                return False
            continue
        for before in orderings.get(node, ()):
            position = of.get(before)
            if position is None:
                return False
            if position > low:
                low = position
        high = low + 2.0
        for variable in node.outputs:
            for client, _ in clients[variable]:
                position = of.get(client)
                # A client without one comes later.
                if position is not None and position < high:
                    high = position
        # Near to what it waits for: others that overwrite what it reads come after it.
        own = low + (high - low) / 16
        if not low < own < high:
            return False
        of[node] = own
    if len(of) != len(nodes):
        return False
    for node, others in orderings.items():
        own = of[node]
        for other in others:
            if of[other] >= own:
                return False
    positions.changed = []
    return True


class _Forget:
    """Discards the known orders at each switch: graphs may have changed without events."""

    def __init__(self) -> None:
        self._is_applied = False

    def prepare(self) -> None:
        pass

    def apply(self) -> None:
        if not self._is_applied:
            forget()
            self._is_applied = True

    def undo(self) -> None:
        self._is_applied = False

    def holds(self) -> bool:
        return self._is_applied


def patch() -> Patch:
    """Return the patch."""
    return Together(
        *(
            DropIn(DestroyHandler, drop_in.__name__, drop_in)
            for drop_in in (on_import, on_prune, on_change_input, on_validate)
        ),
        # After the events are patched.
        _Forget(),
    )
