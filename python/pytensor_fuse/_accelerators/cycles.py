"""Cycle detection: checks only the changes since the graph was last known to be acyclic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.destroyhandler import DestroyHandler

from pytensor_fuse._pytensor import cycles
from pytensor_fuse._pytensor.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


class _Forget:
    """Discards the known orders at each switch: graphs may have changed without events."""

    def __init__(self) -> None:
        self._is_applied = False

    def prepare(self) -> None:
        pass

    def apply(self) -> None:
        if not self._is_applied:
            cycles.forget()
            self._is_applied = True

    def undo(self) -> None:
        self._is_applied = False

    def holds(self) -> bool:
        return self._is_applied


def patch() -> Patch:
    """Return the patch."""
    return Together(
        [
            *(
                DropIn(DestroyHandler, name, getattr(cycles, name))
                for name in ("on_import", "on_prune", "on_change_input", "on_validate")
            ),
            # After the events are patched.
            _Forget(),
        ]
    )
