"""Validation: the destroyers of a variable are looked up once for all protected variables."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, does

ACCELERATOR: Final = Accelerator(
    title="nodes that overwrite variables are looked up once for all protected variables",
    replaces="Supervisor.on_validate and _contains_cycle",
    skips=(
        "a query for each protected variable where one answers all; the variables between the nodes"
    ),
    ground=(
        Does("pytensor.compile.aliasing:Supervisor.on_validate"),
        *does("pytensor.graph.destroyhandler:DestroyHandler", "destroyers refresh_droot_impact"),
        Does("pytensor.graph.destroyhandler:_contains_cycle"),
    ),
    gain=Gain(1.21, "student-t(40)"),
)
