"""Assumptions: rules are looked up once for each class of ops, not for each node."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, Says

ACCELERATOR: Final = Accelerator(
    title="the rules for a class of ops are looked up once",
    replaces="AssumptionFeature._compute and AssumptionKey.__hash__",
    skips=(
        "the look-up of rules for each node, which is done once for each class of ops; hashes "
        "and comparisons of keys in Python"
    ),
    ground=(
        Does("pytensor.assumptions.core:AssumptionFeature._compute"),
        Does("pytensor.assumptions.core:AssumptionFeature.get"),
        Says("pytensor.assumptions.core:AssumptionKey"),
        Does("pytensor.assumptions.core:infer_assumption_for_node"),
        Does("pytensor.assumptions.core:infer_assumption_from_client"),
        Does("pytensor.graph.traversal:walk_toposort"),
        Does("pytensor.graph.traversal:walk"),
    ),
    since=(3, 3),
    gain=Gain(1.17, "Gaussian process"),
)
