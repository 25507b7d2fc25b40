"""Which streams are copied whatever it costs."""

import pytensor.tensor as pt
import pytest

from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.reports import explain_joins
from support.joins.outcomes import MODES, WRITTEN, check, rand, reasons

pytestmark = pytest.mark.usefixtures("joins_on")

x, y, z = pt.vectors("xyz")


@pytest.mark.parametrize("mode", MODES)
def test_streams_with_other_readers_are_copied(mode):
    shared = pt.exp(x) + 1
    out = [pt.concatenate([shared, y * 2 + 1]), shared]
    f = check([x, y], out, mode, (rand(3), rand(4)))
    [report] = explain_joins(f)
    assert report.eliminated == (mode != "NUMBA")
    written = WRITTEN if report.eliminated else JoinReason.KEPT
    assert reasons(f) == (JoinReason.OTHER_CLIENTS, written)
    f = check([x, y], pt.concatenate([shared, shared, y * 2 + 1]), mode, (rand(3), rand(4)))
    [report] = explain_joins(f)
    assert report.eliminated == (mode != "NUMBA")
    assert reasons(f) == (JoinReason.OTHER_CLIENTS, JoinReason.OTHER_CLIENTS, written)


@pytest.mark.parametrize("mode", MODES)
def test_streams_that_no_kernel_computes_are_copied(mode):
    f = check(
        [x, y],
        pt.concatenate([pt.cumsum(x), x, y * 2 + 1, pt.exp(y)]),
        mode,
        (rand(3), rand(4)),
    )
    kept = reasons(f)
    assert kept[0] is JoinReason.NO_KERNEL
    assert kept[2] is WRITTEN
    f = check([x, y], pt.concatenate([x, y]), mode, (rand(3), rand(4)))
    [report] = explain_joins(f)
    assert report.reason is JoinReason.NO_STREAMS
    assert "kept" in str(report)
