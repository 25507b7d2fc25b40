"""Memory, results, arguments and errors of functions whose joins are gone, against stock."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.executor import Function
from pytensor.compile.io import In, Out
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.link.vm import VMLinker

from support.joins.against_stock import (
    LINKERS,
    assert_same_bits,
    check,
    compiled,
    joined,
    kernels_of,
    needs_cxx,
    numbers,
    vectors,
)
from support.joins.strategies import (
    JoinCase,
    affine,
)

# Memory -----------------------------------------------------------------------------------

LARGE = 100_000


def peak_bytes(function: Function, values: Sequence[np.ndarray]) -> int:
    """The most that NumPy's arrays take at once during a call, in bytes, the result included."""
    function(*values)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        function(*values)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def numba_allocations(function: Function, values: Sequence[np.ndarray]) -> int:
    """How often a call asks Numba's runtime for memory."""
    from numba.core.runtime import _nrt_python as nrt
    from numba.core.runtime import rtsys

    function(*values)
    was_on = nrt.memsys_stats_enabled()
    nrt.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats().alloc
        function(*values)
        return rtsys.get_allocation_stats().alloc - before
    finally:
        if not was_on:
            nrt.memsys_disable_stats()


def eight_streams(xs: Sequence[Variable]) -> Variable:
    return joined([x * 2 + 1 for x in xs])


@needs_cxx
def test_only_the_result_is_allocated() -> None:
    xs = vectors(8)
    values = numbers(*[LARGE] * 8)
    result = 8 * 8 * LARGE
    stock, ours = (compiled(xs, eight_streams(xs), "c", ours=on) for on in (False, True))
    assert peak_bytes(stock, values) >= 1.9 * result
    assert peak_bytes(ours, values) <= 1.01 * result


def test_only_the_result_is_allocated_by_numba() -> None:
    xs = vectors(8)
    values = numbers(*[LARGE] * 8)
    stock, ours = (compiled(xs, eight_streams(xs), "numba", ours=on) for on in (False, True))
    # Both sides note the eight arguments.
    assert numba_allocations(stock, values) - numba_allocations(ours, values) == 8


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("linker", LINKERS[:2])
def test_streams_are_parts_of_the_result(linker: str, axis: int) -> None:
    xs = [pt.matrix(f"x{i}") for i in range(3)]
    values = [np.random.default_rng(i).normal(size=(4, 4)) for i in range(3)]
    mode = Mode(VMLinker(allow_gc=False, c_thunks=linker == "c"), "fast_run")
    outputs = [Out(joined([x * 2 + 1 for x in xs], axis), borrow=True)]
    function = compiled([In(x, borrow=True) for x in xs], outputs, mode)
    [result] = function(*values)
    kernels = kernels_of(function)
    assert len(kernels) == 3
    for node in kernels:
        [stream] = function.vm.storage_map[node.outputs[0]]
        assert np.shares_memory(stream, result)
    for x in values:
        assert not np.shares_memory(x, result)
    np.testing.assert_array_equal(result, np.concatenate([x * 2 + 1 for x in values], axis))


# Results and shared variables -------------------------------------------------------------


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("borrow", [False, True])
def test_results_are_the_callers(linker: str, borrow: bool) -> None:
    """The caller may keep results and write over them."""
    x, y = vectors(2)
    function = compiled([x, y], [Out(joined([x * 2 + 1, pt.tanh(y)]), borrow=borrow)], linker)
    values = numbers(3, 4)
    [first] = function(*values)
    expected = first.copy()
    [second] = function(*values)
    assert not np.shares_memory(first, second)
    second[...] = 0
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(function(*values)[0], expected)


@pytest.mark.parametrize("linker", LINKERS)
def test_updates_of_shared_variables(linker: str) -> None:
    def run(ours: bool) -> list[np.ndarray]:
        state = pytensor.shared(np.arange(6.0), name="state")
        other = pytensor.shared(np.ones(3), name="other")
        x = pt.vector("x")
        new = joined([affine(state[:2]), pt.tanh(x), state[2:4] - other[0]])
        function = compiled(
            [x], new.sum(), linker, ours=ours, updates={state: new, other: other + x[:3]}
        )
        results = []
        for length in (2, 5, 3):
            x_value = np.linspace(-1, 1, max(3, length))
            results += [function(x_value), state.get_value(), other.get_value()]
        return results

    assert_same_bits(run(ours=True), run(ours=False), "by stock")


@pytest.mark.parametrize("linker", LINKERS)
def test_arguments_that_may_be_destroyed(linker: str) -> None:
    """A kernel that may write over its argument, and whose result is joined."""
    x, y = vectors(2)
    inputs = [In(x, mutable=True), In(y, mutable=True)]
    outputs = [joined([x * 2 + 1, y - 1])]
    ours, stock = (compiled(inputs, outputs, linker, ours=on) for on in (True, False))
    for lengths in ((3, 4), (2, 2), (0, 1)):
        results = [f(*(v.copy() for v in numbers(*lengths))) for f in (ours, stock)]
        assert_same_bits(*results, "by stock")


@pytest.mark.parametrize("linker", LINKERS)
def test_views_of_one_argument(linker: str) -> None:
    x = pt.vector("x")
    outputs = [joined([x[::-1] * 2, x[1:] + 1, x[::2] * x[::2]]), x[:2]]
    check(JoinCase([x], outputs, [numbers(n) for n in (5, 4, 7)]), linker)


# Errors -----------------------------------------------------------------------------------


def error_of(function: Function, values: Sequence[np.ndarray]) -> type[BaseException] | None:
    try:
        function(*values)
    except Exception as error:
        return type(error)
    return None


def matrices(*shapes: tuple[int, int]) -> list[np.ndarray]:
    return [np.ones(shape) for shape in shapes]


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize(
    ("axis", "shapes"),
    [
        (0, [(2, 3), (2, 3), (2, 4)]),
        (0, [(2, 3), (2, 4), (2, 4)]),
        (1, [(2, 3), (2, 3), (3, 3)]),
        (0, [(2, 3), (1, 1), (2, 3)]),
        (0, [(2, 3), (0, 3), (2, 0)]),
        (1, [(2, 3), (2, 0), (0, 3)]),
    ],
)
def test_wrong_shapes(linker: str, axis: int, shapes: list[tuple[int, int]]) -> None:
    """``x`` and ``y`` must have one shape for the kernel, and ``z`` must fit theirs in the join."""
    x, y, z = (pt.matrix(name) for name in "xyz")
    outputs = joined([x * y + 1, pt.tanh(z)], axis)
    stock, ours = (compiled([x, y, z], outputs, linker, ours=on) for on in (False, True))
    wrong = matrices(*shapes)
    expected = error_of(stock, wrong)
    assert expected is not None
    assert error_of(ours, wrong) is expected
    # The function can still be called.
    right = matrices((2, 3), (2, 3), (2, 3))
    np.testing.assert_array_equal(ours(*right), stock(*right))


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("lengths", [(3, 2), (1, 3), (3, 1), (0, 1)])
def test_lengths_that_only_differ_at_run_time(linker: str, lengths: tuple[int, int]) -> None:
    """Elemwise refuses to broadcast what its types do not say may be."""
    x, y = vectors(2)
    stock, ours = (
        compiled([x, y], joined([x + y, pt.exp(y)]), linker, ours=on) for on in (False, True)
    )
    values = numbers(*lengths)
    assert error_of(ours, values) is error_of(stock, values)


@pytest.mark.parametrize("linker", LINKERS)
def test_wrong_length_of_a_written_slice(linker: str) -> None:
    x, y = vectors(2)
    outputs = affine(x)[1:-1].set(pt.tanh(y))
    stock, ours = (compiled([x, y], outputs, linker, ours=on) for on in (False, True))
    for lengths in ((5, 3), (5, 2), (5, 1), (1, 0), (0, 0), (2, 1), (6, 4)):
        values = numbers(*lengths)
        assert error_of(ours, values) is error_of(stock, values), lengths
        if error_of(stock, values) is None:
            assert_same_bits([ours(*values)], [stock(*values)], "by stock")
