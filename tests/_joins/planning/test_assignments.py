"""Assignments to slices are joins of what is assigned and the pieces between."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.basic import Alloc
from pytensor.tensor.subtensor import IncSubtensor

from pytensor_fuse._joins.ops.elemwise import WriteElemwise
from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.ops.split import WriteSplit
from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.reports import explain_joins
from support.joins.outcomes import MODES, WRITTEN, check, known, nodes, rand, reasons

pytestmark = pytest.mark.usefixtures("joins_on")

x, y, z = pt.vectors("xyz")
A, B = pt.matrices("AB")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("assign", [pt.set_subtensor, pt.inc_subtensor])
def test_assignments_to_slices(mode, assign):
    x = known(1500)
    out = assign(y[500:2000], pt.exp(x) * 2)
    f = check([x, y], out, mode, (rand(1500), rand(2500)), (rand(1500), rand(2000)))
    assert not nodes(f, IncSubtensor)
    assert len(nodes(f, WriteElemwise)) == 1
    given = rand(2500)
    kept = given.copy()
    f(rand(1500), given)
    np.testing.assert_array_equal(given, kept)
    # A tensor shorter than the slice.
    for m in (1999, 300):
        with pytest.raises(ValueError, match="shape mismatch"):
            f(rand(1500), rand(m))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("assign", [pt.set_subtensor, pt.inc_subtensor])
def test_what_turns_out_to_be_of_length_one_is_broadcast(mode, assign):
    out = assign(y[500:2000], pt.exp(x) * 2)
    f = check([x, y], out, mode, (rand(1), rand(2500)), (rand(1500), rand(2500)))
    assert [report.reason for report in explain_joins(f)] == [JoinReason.BROADCAST]
    chain = pt.set_subtensor(assign(y[:1200], pt.exp(x))[1200:3000], pt.sin(z) * 2)
    check([x, y, z], chain, mode, (rand(1), rand(3000), rand(1)))


@pytest.mark.parametrize("mode", MODES)
def test_chains_of_assignments(mode):
    x, z = known(1000), known(1000)
    out = pt.set_subtensor(y[1000:2000], x * 2 + 1)
    out = pt.set_subtensor(out[:1000], pt.exp(z))
    f = check([x, y, z], out, mode, (rand(1000), rand(2500), rand(1000)))
    assert not nodes(f, IncSubtensor)
    [join] = nodes(f, WriteJoin)
    assert join.op.written == (True, True, False)
    with pytest.raises(ValueError, match="shape mismatch"):
        f(rand(1000), rand(1999), rand(1000))
    overlapping = pt.set_subtensor(out[1500:1600], pt.sin(x[:100]))
    check([x, y, z], overlapping, mode, (rand(1000), rand(2500), rand(1000)))


@pytest.mark.parametrize("mode", MODES)
def test_assignments_to_rows_and_to_zeros(mode):
    rows, x = known(1000, 2), known(1500)
    out = pt.set_subtensor(B[1000:2000], rows * 2 + 1)
    f = check([rows, B], out, mode, (rand(1000, 2), rand(2100, 2)))
    assert not nodes(f, IncSubtensor)
    with pytest.raises(ValueError, match="must match"):
        f(rand(1000, 2), rand(2100, 3))
    zeros = pt.set_subtensor(pt.zeros(2000)[:1500], x * 2 + 1)
    f = check([x], zeros, mode, (rand(1500),))
    assert not nodes(f, IncSubtensor)


@pytest.mark.parametrize("mode", MODES)
def test_assignments_that_are_left_alone(mode):
    x, few = known(2000), known(40)
    for out, reason in (
        (pt.set_subtensor(y[:2000], x[0] * 2 + 1), JoinReason.BROADCAST),
        (pt.set_subtensor(y[:40], few * 2 + 1), JoinReason.FEW),
        (pt.set_subtensor(y[:2000], x), JoinReason.NO_STREAMS),
        (pt.set_subtensor(pt.cumsum(y)[:2000], x * 2 + 1), JoinReason.OVERWRITES),
    ):
        f = pytensor.function([x, y, few], out, mode=mode, on_unused_input="ignore")
        assert [report.reason for report in explain_joins(f)] == [reason]
        assert not nodes(f, WriteSplit)
    for index in (slice(-3, None), slice(None, None, 2), slice(None, 7, -1)):
        f = pytensor.function([x, y], pt.set_subtensor(y[index], x * 2 + 1), mode=mode)
        assert [report.reason for report in explain_joins(f)] == [JoinReason.BOUNDS]


@pytest.mark.parametrize("mode", MODES)
def test_shared_variables_are_still_assigned_in_place(mode):
    state = pytensor.shared(np.ones(9000), name="state")
    x = known(2000)
    f = pytensor.function(
        [x], [], updates={state: pt.set_subtensor(state[:2000], x * 2 + 1)}, mode=mode
    )
    assert [report.reason for report in explain_joins(f)] == [JoinReason.OVERWRITES]
    f(rand(2000))
    np.testing.assert_allclose(state.get_value()[:2000], rand(2000) * 2 + 1)


def test_debugmode_agrees_about_assignments():
    x = known(1000)
    out = pt.inc_subtensor(pt.set_subtensor(y[:1000], x * 2 + 1)[1000:2000], pt.exp(x))
    f = pytensor.function([x, y], out, mode="DebugMode")
    assert nodes(f, WriteJoin)
    a, b = rand(1000), rand(2100)
    want = np.concatenate([a * 2 + 1, b[1000:2000] + np.exp(a), b[2000:]])
    np.testing.assert_allclose(f(a, b), want)


@pytest.mark.parametrize("mode", MODES)
def test_what_surrounds_an_assignment_is_filled(mode):
    v = pt.vector("v", shape=(2000,))
    f = check([v], pt.zeros(2500)[300:2300].set(v * 2 + 1), mode, (rand(2000),))
    assert not nodes(f, Alloc)
    assert reasons(f) == (WRITTEN,) * 3


@pytest.mark.parametrize("mode", MODES)
def test_slices_counted_from_the_end_of_a_known_length(mode):
    v = pt.vector("v", shape=(3000,))
    for index in (slice(500, -500), slice(-2500, 2500), slice(-2500, None)):
        n = len(range(3000)[index])
        x = known(n)
        f = check([v, x], pt.set_subtensor(v[index], x * 2 + 1), mode, (rand(3000), rand(n)))
        assert nodes(f, WriteJoin)
    x = known(0)
    f = check([v, x], pt.set_subtensor(v[-500:-2000], x * 2 + 1), mode, (rand(3000), rand(0)))
    assert not nodes(f, WriteJoin)


@pytest.mark.parametrize("mode", MODES)
def test_assignments_to_the_whole_tensor_still_compare_the_other_lengths(mode):
    a = pt.tensor("a", shape=(1000, None))
    b, c = pt.tensor("b", shape=(500, 5)), pt.tensor("c", shape=(500, 5))
    out = a[:500].set(pt.sin(b))[500:].set(pt.cos(c))
    f = check([a, b, c], out, mode, (rand(1000, 5), rand(500, 5), rand(500, 5)))
    with pytest.raises(ValueError, match=r"shape|broadcast|dimension"):
        f(rand(1000, 7), rand(500, 5), rand(500, 5))
