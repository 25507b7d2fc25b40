"""Serialized increments: the pass that chains increments of one array, with one graph edit."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, does

ACCELERATOR: Final = Accelerator(
    title="increments of parts of an array are chained in one edit",
    replaces="apply of the pass pre_local_IncSubtensor_serialize",
    skips=(
        "replacements that are replaced again: `n**2 / 2` of them for the gradient of a "
        "function that reads `n` elements of an array. Rust takes the steps on integers"
    ),
    ground=(
        Does("pytensor.tensor.rewriting.subtensor:local_IncSubtensor_serialize.fn"),
        Does("pytensor.tensor.math:variadic_add"),
        Does("pytensor.graph.rewriting.basic:copy_stack_trace"),
        Does("pytensor.graph.rewriting.basic:WalkingGraphRewriter.apply"),
        Does("pytensor.graph.rewriting.basic:NodeProcessingGraphRewriter.process_node"),
        *does(
            "pytensor.graph.fg:FunctionGraph", "replace change_node_input import_node remove_client"
        ),
        *does("pytensor.graph.features:ReplaceValidate", "replace_all_validate on_import"),
        Does("pytensor.graph.features:History.on_change_input"),
        Does("pytensor.graph.features:PreserveVariableAttributes.on_change_input"),
        *does("pytensor.graph.destroyhandler:DestroyHandler", "on_import on_change_input on_prune"),
        *does("pytensor.tensor.rewriting.shape:ShapeFeature", "on_change_input on_prune"),
    ),
    since=(3, 3),
    gain=Gain(1.57, "large(100)"),
)
