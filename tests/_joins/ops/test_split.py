"""`WriteSplit` keeps the memory of a result for the next call, if it is asked to."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode, get_mode

import pytensor_fuse
from pytensor_fuse._joins.ops.split import WriteSplit
from support.joins.outcomes import PYTHON, check, nodes, rand

pytestmark = pytest.mark.usefixtures("joins_on")

x, y, z = pt.vectors("xyz")


def reusing(mode):
    return get_mode(mode).including("join_buffer_reuse")


def address(array):
    return array.ctypes.data


@pytest.mark.parametrize("linker", ["cvm", "vm"])
def test_memory_of_results_that_are_dropped_is_used_again(linker):
    mode = Mode(linker=linker, optimizer="fast_run").including("join_buffer_reuse")
    f = pytensor.function([x, y], pt.concatenate([x * 2 + 1, pt.exp(y)]), mode=mode)
    big = rand(100_000), rand(50_000)
    place = address(f(*big))
    taken = [np.empty(150_000) for _ in range(3)]
    assert place not in [address(array) for array in taken]
    for _ in range(3):
        result = f(*big)
        assert address(result) == place
        np.testing.assert_allclose(result, np.concatenate([big[0] * 2 + 1, np.exp(big[1])]))
        del result


@pytest.mark.parametrize("mode", ["CVM", "NUMBA", PYTHON])
@pytest.mark.usefixtures("always_worth_it")
def test_results_that_are_kept_are_never_written_over(mode):
    f = check(
        [x, y],
        pt.concatenate([x * 2 + 1, pt.exp(y)]),
        reusing(mode),
        *[(rand(n), rand(n + 1)) for n in (5, 5, 6, 0, 5)],
    )
    kept, copies = [], []
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(0, 3))
        result = f(rng.random(n), rng.random(3 - n))
        # The array, a view of it, what exports its memory, or nothing.
        held = [result, result[1:], memoryview(result), None][int(rng.integers(0, 4))]
        if held is not None:
            kept.append(held)
            copies.append(np.array(held))
        del result, held
        for array, copy in zip(kept, copies, strict=True):
            np.testing.assert_array_equal(np.asarray(array), copy)


@pytest.mark.parametrize("mode", ["CVM", "NUMBA"])
def test_shared_variables_outlive_reuse(mode):
    state = pytensor.shared(np.ones(7), name="state")
    out = pt.concatenate([state[:3] * 2, pt.exp(-state[3:])])
    f = pytensor.function([], [], updates={state: out}, mode=reusing(mode))
    want = np.ones(7)
    for _ in range(4):
        before = state.get_value(borrow=True)
        copy = before.copy()
        f()
        want = np.concatenate([want[:3] * 2, np.exp(-want[3:])])
        np.testing.assert_allclose(state.get_value(), want)
        np.testing.assert_array_equal(before, copy)


def test_reuse_is_off_unless_asked_for():
    out = pt.concatenate([x * 2 + 1, pt.exp(y)])
    assert not nodes(pytensor.function([x, y], out, mode="CVM"), WriteSplit)[0].op.reuse
    f = pytensor.function([x, y], out, mode=reusing("CVM"))
    assert nodes(f, WriteSplit)[0].op.reuse
    first = f(rand(3), rand(4))
    first.flags.writeable = False
    del first
    assert f(rand(3), rand(4)).flags.writeable
    with pytensor_fuse.enabled(False):
        f = pytensor.function([x, y], out, mode=reusing("CVM"))
        assert not nodes(f, WriteSplit)
