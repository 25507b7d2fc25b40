"""Cycle detection: checks only the changes since the graph was last known to be acyclic."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, does

ACCELERATOR: Final = Accelerator(
    title="only the changed part of a graph is searched for cycles",
    replaces="DestroyHandler.on_import, on_prune, on_change_input and on_validate",
    skips=(
        "a search of the whole graph for cycles after each replacement: changes are compared "
        "with an order that is maintained"
    ),
    ground=(
        *does(
            "pytensor.graph.destroyhandler:DestroyHandler",
            "on_validate on_import on_prune on_change_input orderings",
        ),
        Does("pytensor.graph.destroyhandler:_contains_cycle"),
    ),
    gain=Gain(1.05, "large(100)"),
)
