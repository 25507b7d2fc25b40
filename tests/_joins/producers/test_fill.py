"""Streams that are filled with a number."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import get_mode
from pytensor.tensor.basic import Alloc

from pytensor_fuse._joins.ops.fill import WriteFill
from support.joins.outcomes import MODES, PYTHON, WRITTEN, check, nodes, rand, reasons

pytestmark = pytest.mark.usefixtures("joins_on")

x, y, z = pt.vectors("xyz")
A, B = pt.matrices("AB")


@pytest.mark.usefixtures("always_worth_it")
@pytest.mark.parametrize("mode", [*MODES, PYTHON])
def test_streams_that_are_filled_with_a_number(mode):
    n, a = pt.lscalar("n"), pt.scalar("a")
    k = pt.scalar("k", dtype="int32")
    out = pt.concatenate(
        [pt.alloc(a * 2, n), x * 2 + 1, pt.zeros(x.shape[0] + 1), pt.alloc(k, 2, n).ravel()]
    )
    values = [(rand(5), 3, 0.25, 7), (rand(0), 1, 1.5, 2), (rand(2), 0, -1.0, 3)]
    values = [(v, n, a, np.int32(k)) for v, n, a, k in values]
    f = check([x, n, a, k], out, mode, *values)
    assert reasons(f) == (WRITTEN,) * 4
    assert not nodes(f, Alloc)
    assert len(nodes(f, WriteFill)) == 3
    without = pytensor.function(
        [x, n, a, k], out, mode=get_mode(mode).excluding("join_buffer_elimination")
    )
    negative = (rand(5), -1, 0.0, np.int32(1))
    with pytest.raises((ValueError, MemoryError)) as expected:
        without(*negative)
    with pytest.raises(expected.type, match="negative"):
        f(*negative)


@pytest.mark.usefixtures("always_worth_it")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [0, 1])
def test_blocks_that_are_filled_with_a_number(mode, axis):
    rows, a = pt.lscalar("rows"), pt.scalar("a")
    out = pt.concatenate([A * 2 + 1, pt.alloc(a, rows, 3)], axis=axis)
    f = check([A, rows, a], out, mode, (rand(3, 3), 3, 0.5), (rand(1, 3), 1, 0.5))
    assert reasons(f) == (WRITTEN, WRITTEN)
    with pytest.raises(ValueError, match="must match"):
        f(rand(2, 4), 3, 0.5)


@pytest.mark.usefixtures("always_worth_it")
def test_debugmode_agrees_about_what_is_filled():
    n = pt.lscalar("n")
    out = pt.concatenate([pt.alloc(y[0], n), x * 2 + 1])
    f = pytensor.function([x, y, n], out, mode="DebugMode")
    assert nodes(f, WriteFill)
    np.testing.assert_allclose(f([1.0, 2.0], [7.0], 2), [7, 7, 3, 5])
