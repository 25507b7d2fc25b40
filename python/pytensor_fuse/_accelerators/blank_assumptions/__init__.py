"""Assumptions: skip the inference rules for inputs of unknown structure."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does

ACCELERATOR: Final = Accelerator(
    title="rules for assumptions are skipped for inputs of unknown structure",
    replaces="AssumptionFeature.check",
    skips=(
        "calls of rules for inputs of unknown structure, from which nothing follows: an "
        "Elemwise, a DimShuffle or a part of such an input gets all its answers at once, and "
        "so does each op without rules"
    ),
    ground=(
        Does("pytensor.assumptions.core:AssumptionFeature.check"),
        Does("pytensor.assumptions.core:AssumptionFeature.get"),
        Does("pytensor.assumptions.core:AssumptionFeature._compute"),
        Does("pytensor.assumptions.core:AssumptionFeature.on_change_input"),
        Does("pytensor.assumptions.core:AssumptionFeature._drop_unknown_downstream"),
        Does("pytensor.assumptions.core:infer_assumption_for_node"),
        Does("pytensor.assumptions.core:infer_assumption_from_client"),
        Does("pytensor.assumptions.core:true_if"),
        Does("pytensor.graph.traversal:walk_toposort"),
        Does("pytensor.graph.traversal:walk"),
        Does("pytensor.assumptions.diagonal:_elemwise"),
        Does("pytensor.assumptions.diagonal:_dimshuffle"),
        Does("pytensor.assumptions.positive_definite:_is_psd_full_shape"),
        Does("pytensor.assumptions.positive_definite:_elemwise"),
        Does("pytensor.assumptions.positive_definite:_dimshuffle"),
        Does("pytensor.assumptions.symmetric:_preserves_symmetry_under_broadcast"),
        Does("pytensor.assumptions.symmetric:_elemwise"),
        Does("pytensor.assumptions.symmetric:_dimshuffle"),
        Does("pytensor.assumptions.triangular:_elemwise_lower"),
        Does("pytensor.assumptions.triangular:_elemwise_upper"),
        Does("pytensor.assumptions.triangular:_lower_dimshuffle"),
        Does("pytensor.assumptions.triangular:_upper_dimshuffle"),
        Does("pytensor.assumptions.tridiagonal:_elemwise"),
        Does("pytensor.assumptions.tridiagonal:_dimshuffle"),
        Does("pytensor.assumptions.elemwise:elemwise_preserves_zero_pattern"),
        Does("pytensor.assumptions.dimshuffle:dimshuffle_propagates_matrix_property"),
        Does("pytensor.assumptions.dimshuffle:left_expand_dims_propagates_matrix_property"),
        Does("pytensor.assumptions.subtensor:subtensor_propagates_matrix_property"),
        Does("pytensor.assumptions.subtensor:incsubtensor_propagates_matrix_property"),
        Does("pytensor.assumptions.diagonal:_inc_subtensor"),
        Does("pytensor.assumptions.shape:reshape_propagates_matrix_property"),
        Does("pytensor.assumptions.blockwise:_blockwise_delegate"),
        Does("pytensor.assumptions.orthogonal:_dimshuffle"),
        Does("pytensor.assumptions.permutation:_dimshuffle"),
        Does("pytensor.assumptions.selection:_subtensor"),
        Does("pytensor.assumptions.permutation:_permutation_from_constant"),
        Does("pytensor.assumptions.selection:_selection_from_constant"),
        Does("pytensor.assumptions.diagonal:_diagonal_from_constant"),
        Does("pytensor.assumptions.tridiagonal:_tridiagonal_from_constant"),
    ),
    since=(3, 3),
    gain=Gain(1.42, "deep(400)"),
)
