"""Assumptions: rules are looked up once for each class of ops, not for each node."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Says, does

ACCELERATOR: Final = Accelerator(
    title="the rules for a class of ops are looked up once",
    replaces="AssumptionFeature._compute and AssumptionKey.__hash__",
    skips=(
        "the look-up of rules for each node, which is done once for each class of ops; hashes "
        "and comparisons of keys in Python"
    ),
    ground=(
        *does("pytensor.assumptions.core:AssumptionFeature", "_compute get"),
        Says("pytensor.assumptions.core:AssumptionKey"),
        *does(
            "pytensor.assumptions.core", "infer_assumption_for_node infer_assumption_from_client"
        ),
        *does("pytensor.graph.traversal", "walk_toposort walk"),
    ),
    since=(3, 3),
    gain=Gain(1.17, "Gaussian process"),
)
