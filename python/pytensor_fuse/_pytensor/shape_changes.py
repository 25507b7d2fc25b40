"""What `ShapeFeature` does where a node comes to read something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.type import HasShape
from pytensor.tensor.rewriting.shape import ShapeFeature
from pytensor.tensor.shape import Shape_i

from pytensor_fuse._core import readers_of_class

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply

_stock: Any = ShapeFeature.on_change_input


def on_change_input(
    self: Any, fgraph: Any, node: Apply[Any], i: int, r: Any, new_r: Any, reason: Any
) -> None:
    """Do as `ShapeFeature.on_change_input`.

    It looks through all that reads ``r`` for nodes that ask for its shape, each time that one of
    them comes to read something else.
    """
    if r is new_r:
        return
    readers = fgraph.clients.get(r, [])
    if type(readers) is not list:
        _stock(self, fgraph, node, i, r, new_r, reason)
        return
    self._stale.add(node)
    if readers and isinstance(r.type, HasShape):
        try:
            asking = readers_of_class(readers, Shape_i)
        except (AttributeError, TypeError):
            # Somebody has written into the clients of a variable.
            _stock(self, fgraph, node, i, r, new_r, reason)
            return
        for reader in asking:
            self.scheduled[reader] = new_r
