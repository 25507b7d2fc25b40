"""Canonical forms: products and sums already in theirs are recognized without computing it."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, Has

ACCELERATOR: Final = Accelerator(
    title="canonical sums and products are recognized without canonizing them again",
    replaces="AlgebraicCanonizer.transform and local_greedy_distributor",
    skips=(
        "simplifications of factors and terms that are simple already: none stands on both "
        "sides of the line, and at most one constant stands first. Sums are checked before "
        "they are taken apart"
    ),
    ground=(
        Does("pytensor.tensor.rewriting.math:AlgebraicCanonizer.transform"),
        Does("pytensor.tensor.rewriting.math:AlgebraicCanonizer.get_num_denum"),
        Does("pytensor.tensor.rewriting.math:AlgebraicCanonizer.simplify"),
        Does("pytensor.tensor.rewriting.math:AlgebraicCanonizer.simplify_constants"),
        Does("pytensor.tensor.rewriting.math:AlgebraicCanonizer.simplify_factors"),
        Does("pytensor.tensor.rewriting.math:mul_calculate"),
        Does("pytensor.tensor.rewriting.math:add_calculate"),
        Does("pytensor.tensor.rewriting.math:check_for_x_over_absX"),
        Does("pytensor.tensor.rewriting.math:attempt_distribution"),
        Does("pytensor.tensor.rewriting.math:local_greedy_distributor.fn"),
        Does("pytensor.tensor.basic:_get_underlying_scalar_constant_value"),
        Has("pytensor.tensor.basic", "_scalar_constant_value_elemwise_ops"),
    ),
    since=(3, 3),
    gain=Gain(1.04, "radon"),
)
