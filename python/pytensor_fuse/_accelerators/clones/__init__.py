"""Copies of nodes: one call per copy instead of a dozen."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, Has, does

ACCELERATOR: Final = Accelerator(
    title="nodes are copied in one call each",
    replaces="Apply.clone_with_new_inputs",
    skips="calls for each part of a copied node, and tags that are thrown away",
    ground=(
        *does("pytensor.graph.basic:Apply", "clone_with_new_inputs clone __init__"),
        *does("pytensor.graph.basic:Variable", "clone __init__"),
        Does("pytensor.tensor.variable:TensorVariable.__init__"),
        Does("pytensor.graph.utils:Scratchpad.__setattr__"),
        Has("pytensor.configdefaults:config", "_config_var_dict"),
    ),
    gain=Gain(1.07, "deep(400)"),
)
