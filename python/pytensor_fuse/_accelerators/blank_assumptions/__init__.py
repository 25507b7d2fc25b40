"""Assumptions: skip the inference rules for inputs of unknown structure."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, does

ACCELERATOR: Final = Accelerator(
    title="rules for assumptions are skipped for inputs of unknown structure",
    replaces="AssumptionFeature.check",
    skips=(
        "calls of rules for inputs of unknown structure, from which nothing follows: an "
        "Elemwise, a DimShuffle or a part of such an input gets all its answers at once, and "
        "so does each op without rules"
    ),
    ground=(
        *does(
            "pytensor.assumptions.core:AssumptionFeature",
            "check get _compute on_change_input _drop_unknown_downstream",
        ),
        *does(
            "pytensor.assumptions.core",
            "infer_assumption_for_node infer_assumption_from_client true_if",
        ),
        *does("pytensor.graph.traversal", "walk_toposort walk"),
        *does("pytensor.assumptions.diagonal", "_elemwise _dimshuffle"),
        *does("pytensor.assumptions.positive_definite", "_is_psd_full_shape _elemwise _dimshuffle"),
        *does(
            "pytensor.assumptions.symmetric",
            "_preserves_symmetry_under_broadcast _elemwise _dimshuffle",
        ),
        *does(
            "pytensor.assumptions.triangular",
            "_elemwise_lower _elemwise_upper _lower_dimshuffle _upper_dimshuffle",
        ),
        *does("pytensor.assumptions.tridiagonal", "_elemwise _dimshuffle"),
        Does("pytensor.assumptions.elemwise:elemwise_preserves_zero_pattern"),
        *does(
            "pytensor.assumptions.dimshuffle",
            "dimshuffle_propagates_matrix_property left_expand_dims_propagates_matrix_property",
        ),
        *does(
            "pytensor.assumptions.subtensor",
            "subtensor_propagates_matrix_property incsubtensor_propagates_matrix_property",
        ),
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
