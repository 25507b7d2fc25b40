"""Joins are left alone where writing in place does not gain."""

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.link.vm import VMLinker
from pytensor.tensor.basic import Join

from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.reports import explain_joins
from support.joins.outcomes import MODES, check, nodes, rand

pytestmark = pytest.mark.usefixtures("joins_on")

x, y, z = pt.vectors("xyz")
A, B = pt.matrices("AB")


@pytest.mark.parametrize("mode", MODES)
def test_small_results_are_left_alone(mode):
    vectors = [pt.vector(shape=(2,)) for _ in range(2)]
    f = check(vectors, pt.concatenate([v * 2 + 1 for v in vectors]), mode, (rand(2), rand(2)))
    [report] = explain_joins(f)
    assert report.reason is JoinReason.SMALL
    assert nodes(f, Join)


def test_a_stream_alone_is_written_where_that_gains():
    out = pt.concatenate([x * 2 + 1, y])
    [report] = explain_joins(pytensor.function([x, y], out, mode="NUMBA"))
    assert report.reason is JoinReason.FEW
    long = pt.vector("long", shape=(5000,))
    f = check([long, y], pt.concatenate([long * 2 + 1, y]), "NUMBA", (rand(5000), rand(3)))
    assert nodes(f, WriteJoin)


@pytest.mark.parametrize("linker", ["py", "vm"])
def test_python_linkers_keep_joins_of_what_may_be_small(linker):
    mode = Mode(linker=linker, optimizer="fast_run")
    if linker == "vm":
        mode = Mode(linker=VMLinker(c_thunks=False, use_cloop=False), optimizer="fast_run")
    f = check([x, y], pt.concatenate([pt.exp(x), y * 2 + 1]), mode, (rand(3), rand(4)))
    [report] = explain_joins(f)
    assert report.reason is JoinReason.FEW
    long = [pt.vector(shape=(300_000,)) for _ in range(2)]
    f = check(long, pt.concatenate([pt.exp(v) for v in long]), mode, [rand(300_000)] * 2)
    assert nodes(f, WriteJoin)


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_lie_apart(mode):
    out = pt.stack([pt.exp(x) * 2, pt.sin(y)], axis=1)
    f = check([x, y], out, mode, (rand(40), rand(40)))
    [report] = explain_joins(f)
    if mode == "NUMBA":
        assert report.eliminated == (len(report.streams) >= 3)
    else:
        assert set(report.streams) == {JoinReason.INTERLEAVED}
    wide = pt.concatenate([A * 2 + 1, B - 1, A + B], axis=1)
    f = check([A, B], wide, mode, (rand(4, 40), rand(4, 40)), (rand(40, 4).T, rand(4, 40)))
    assert nodes(f, WriteJoin) if mode == "CVM" else not nodes(f, WriteJoin)
    dear = pt.concatenate([pt.tanh(A), pt.exp(B), pt.exp(A + B)], axis=1)
    f = check([A, B], dear, mode, (rand(4, 40), rand(4, 40)), (rand(4, 3), rand(4, 3)))
    assert nodes(f, WriteJoin)


def test_single_elements_stay_scalars_in_numba():
    one = pt.vector("one", shape=(1,))
    f = check([one, x, y], pt.concatenate([one * 2, x + 1, -y]), "NUMBA", ([1.0], rand(3), rand(4)))
    [report] = explain_joins(f)
    assert report.reason is JoinReason.FEW


def test_what_is_in_place_already_saves_no_array_in_numba():
    # The kernel of the first stream would overwrite the sums.
    def stream_of(length):
        v = pt.vector(shape=(length,))
        return v, pt.concatenate([pt.cumsum(v) * 2 + 1, v * 3])

    v, joined = stream_of(None)
    f = check([v], joined, "NUMBA", (rand(7),))
    [report] = explain_joins(f)
    assert report.reason is JoinReason.FEW
    v, joined = stream_of(5000)
    f = check([v], joined, "NUMBA", (rand(5000),))
    [report] = explain_joins(f)
    assert report.eliminated
