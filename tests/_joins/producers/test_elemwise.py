"""Streams that kernels write, and in which dtypes."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_fuse._joins.plans import JoinReason
from support.joins.outcomes import MODES, PYTHON, WRITTEN, check, rand, reasons

pytestmark = pytest.mark.usefixtures("joins_on")

x, y, z = pt.vectors("xyz")


@pytest.mark.parametrize("mode", MODES)
def test_streams_are_cast_as_they_are_written(mode):
    i, u = pt.ivector("i"), pt.vector("u", dtype="float32")
    out = pt.concatenate([i * 2 + 1, pt.exp(u) * u, x * 2 + 1])
    values = np.arange(4, dtype="int32"), np.arange(3, dtype="float32"), rand(5)
    f = check([i, u, x], out, mode, values)
    assert reasons(f) == (WRITTEN,) * 3


@pytest.mark.usefixtures("always_worth_it")
def test_small_integers_overflow_in_python_as_in_numpy():
    small = pt.vector("small", dtype="int8")
    values = np.array([1, 16, -128], "int8")
    f = check([small, x], pt.concatenate([small * small, x * 2]), PYTHON, (values, rand(4)))
    assert reasons(f) == (JoinReason.DTYPE, WRITTEN)
    out = pt.zeros(9, dtype="int8")[2:5].inc(pt.specify_shape(small, 3) * 2)
    check([small], out, PYTHON, (values,))
