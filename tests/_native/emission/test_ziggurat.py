"""Normal numbers by the inlined ziggurat agree with NumPy's, also in the tail and at edges."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_fuse._native.emission import ziggurat_tables


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.SFC64])
def test_many_numbers(kind):
    shared = pytensor.shared(np.random.Generator(kind(8)))
    after, out = pt.random.normal(size=(200_000,), rng=shared, return_next_rng=True)
    function = pytensor.function([], out, updates={shared: after}, mode="NATIVE")
    assert "draw.ziggurat" in function.vm.compiled.module.text
    oracle = np.random.Generator(kind(8))
    for _ in range(2):
        drawn = function()
        assert np.array_equal(drawn, oracle.standard_normal(200_000))
        assert np.abs(drawn).max() > ziggurat_tables.TAIL
    state = shared.get_value(borrow=True).bit_generator.state
    np.testing.assert_equal(state, oracle.bit_generator.state)


def test_tables_are_those_of_numba():
    from numba.np.random import _constants

    for name, table in (("wi", "WIDTHS"), ("fi", "DENSITIES")):
        bits = getattr(_constants, f"{name}_double").view(np.uint64)
        assert tuple(bits.tolist()) == getattr(ziggurat_tables, table)
    assert tuple(_constants.ki_double.tolist()) == ziggurat_tables.BELOW
    assert _constants.ziggurat_nor_r == ziggurat_tables.TAIL
    assert _constants.ziggurat_nor_inv_r == ziggurat_tables.ONE_BY_TAIL
