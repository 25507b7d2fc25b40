"""Where lengths are read from."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.reports import explain_joins
from support.joins.outcomes import MODES, WRITTEN, check, rand, reasons

pytestmark = pytest.mark.usefixtures("joins_on")

x, y, z = pt.vectors("xyz")


@pytest.mark.parametrize("mode", MODES)
def test_lengths_of_copied_streams_are_read_from_inputs(mode):
    # The kernel of the last also gives what is summed and scattered into the others.
    i = pt.lvector("i")
    a = pt.scalar("a")
    residual = z - (a * y + x[i])
    loss = (residual**2 * pt.exp(a)).sum()
    out = pt.concatenate([g.ravel() for g in pytensor.grad(loss, [a, x, y, z])])
    values = 0.5, rand(4), rand(6), rand(6), np.array([0, 1, 1, 2, 3, 3])
    f = check([a, x, y, z, i], out, mode, values)
    [report] = explain_joins(f)
    assert report.eliminated == (mode != "NUMBA")
    assert reasons(f)[2:] == (WRITTEN if report.eliminated else JoinReason.KEPT,) * 2
