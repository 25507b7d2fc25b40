"""Streams of one join that cannot be written together."""

from importlib import import_module

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.raise_op import Assert

from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.reports import explain_joins
from support.joins.outcomes import MODES, check, rand, reasons

pytestmark = pytest.mark.usefixtures("joins_on")

x, y, z = pt.vectors("xyz")


@pytest.mark.parametrize("mode", MODES)
def test_lengths_that_a_written_kernel_decides(mode):
    # The second stream is as long as the kernel of the first says.
    a, b = pt.exp(x) * y, pt.exp(x) + y
    tail = pt.sin(pt.arange(b.sum().astype("int64")).astype("float64"))
    f = check([x, y], pt.concatenate([a, tail]), mode, (rand(6), rand(6)))
    assert JoinReason.LENGTH in reasons(f) or reasons(f)[0] is JoinReason.OTHER_CLIENTS


def ifelse(*operands):
    module = "pytensor.conditional.op"
    try:
        found = import_module(module)
    except ModuleNotFoundError:
        found = import_module("pytensor.ifelse")
    return found.ifelse(*operands)


def test_a_branch_that_is_not_taken_is_not_computed():
    # One kernel makes a stream of the one branch and the whole of the other.
    taken, checked = pt.iscalar("taken"), Assert("the branch that is not taken")(z, z.sum() > 0)
    both = pt.sin(x)
    filtered = checked[(checked > 0).nonzero()[0]]
    out = ifelse(taken, pt.concatenate([both * 3, filtered]), both * 2)
    f = pytensor.function([x, z, taken], out, mode="CVM")
    np.testing.assert_array_equal(f(rand(4), -rand(3), 0), np.sin(rand(4)) * 2)
    [report] = explain_joins(f)
    assert report.streams[0] is JoinReason.WAITS
    with pytest.raises(AssertionError, match="not taken"):
        f(rand(4), -rand(3), 1)
