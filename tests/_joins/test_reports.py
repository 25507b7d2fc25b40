"""Reports say what became of joins."""

import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.reports import explain_joins
from support.joins import MODES

pytestmark = pytest.mark.usefixtures("joins_on")

x, y, z = pt.vectors("xyz")


def test_reports_say_why():
    out = pt.concatenate([x * 2 + 1, y, pt.exp(x)])
    [report] = explain_joins(pytensor.function([x, y], out, mode="CVM"))
    assert report.eliminated
    assert "2 of 3 streams written" in str(report)
    assert "stream 1 is copied" in str(report)


@pytest.mark.parametrize("mode", MODES)
def test_vectors_of_numbers_are_reported(mode):
    a, b = pt.scalars("ab")
    f = pytensor.function([a, b], pt.stack([pt.exp(a) * 2, pt.tanh(b)]), mode=mode)
    assert [report.reason for report in explain_joins(f)] == [JoinReason.SCALARS]
