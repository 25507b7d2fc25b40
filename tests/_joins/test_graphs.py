"""Streams written into the joined buffer, on random graphs and on a model, against stock.

Nothing here knows how the rewrite works: it is switched off by its name, and its ops are found by
theirs. The same kernels run with and without it, so results are compared bit for bit; with those of
stock too, but for the signs of zeros, since stock takes the constants 0.0 and -0.0 for one.

There are two exceptions, for compilers may then round otherwise: in Numba kernels that sum as well,
and kernels that an `inc_subtensor` is taken into.
"""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import event, given, settings
from pytensor.compile.debug.debugmode import DebugMode
from pytensor.compile.executor import Function
from pytensor.compile.io import In, Out
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.replace import clone_replace
from pytensor.link.vm import VMLinker
from pytensor.tensor.elemwise import Elemwise

import pytensor_fuse
from support.graphs import assert_same_results
from support.join_strategies import (
    JoinCase,
    JoinProgram,
    SliceProgram,
    affine,
    build_join,
    build_slices,
    join_programs,
    laid_out,
    slice_programs,
)
from support.joins import always_worth_it

REWRITE = "join_buffer_elimination"

needs_cxx = pytest.mark.skipif(not pytensor.config.cxx, reason="needs a C++ compiler")
LINKERS = ["py", pytest.param("c", marks=needs_cxx), "numba"]
COMPILERS = LINKERS[1:]

few_examples = settings(max_examples=min(40, max(4, settings().max_examples // 6)))
"""For tests that compile every kernel."""


def mode_of(linker: str) -> Mode:
    return (
        Mode("py", "fast_run")
        if linker == "py"
        else get_mode({"c": "CVM", "numba": "NUMBA"}[linker])
    )


def compiled(
    inputs: Sequence[Any],
    outputs: Any,
    linker: str | Mode = "py",
    *,
    ours: bool = True,
    joins: bool = True,
    **options: Any,
) -> Function:
    """A function of stock's, of ours without the rewrite of joins, or of ours."""
    mode = mode_of(linker) if isinstance(linker, str) else linker
    if not joins:
        mode = mode.excluding(REWRITE)
    options.setdefault("on_unused_input", "ignore")
    with pytensor_fuse.enabled(ours), always_worth_it():
        return pytensor.function(inputs, outputs, mode=mode, **options)


def ops_named(function: Function, *names: str) -> list[Apply]:
    return [node for node in function.maker.fgraph.toposort() if type(node.op).__name__ in names]


def kernels_of(function: Function) -> list[Apply]:
    """The kernels on arrays; those on scalars compute lengths.

    Nor those on one element: PyTensor 3.3 computes them in Numba without an array where it can.
    """
    return [
        node
        for node in function.maker.fgraph.toposort()
        if isinstance(node.op, Elemwise) or type(node.op).__name__ == "FusedElemwise"
        if any(not all(n == 1 for n in getattr(out.type, "shape", ())) for out in node.outputs)
    ]


def is_rewritten(function: Function) -> bool:
    return bool(ops_named(function, "WriteJoin", "WriteSplit"))


def assert_equal(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], what: str) -> None:
    for i, (g, e) in enumerate(zip(got, expected, strict=True)):
        np.testing.assert_array_equal(g, e, strict=True, err_msg=f"output {i}, {what}")


def assert_same_bits(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], what: str) -> None:
    assert_equal(got, expected, what)
    for i, (g, e) in enumerate(zip(got, expected, strict=True)):
        assert np.asarray(g).tobytes() == np.asarray(e).tobytes(), f"output {i}, signs, {what}"


def check(case: JoinCase, linker: str | Mode, *, rounding: float = 0.0) -> Function:
    """Assert that ours is what stock's is: results, kernels, arguments, and results kept.

    ``rounding`` is for where an addition may be done in another order, or with a product before it.
    """
    stock = compiled(case.inputs, case.outputs, linker, ours=False)
    without = compiled(case.inputs, case.outputs, linker, joins=False)
    ours = compiled(case.inputs, case.outputs, linker)
    assert not is_rewritten(without)
    assert len(kernels_of(ours)) == len(kernels_of(without))
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    for values in case.calls:
        copies = [value.copy() for value in values]
        got = ours(*values)
        for value, copy in zip(values, copies, strict=True):
            np.testing.assert_array_equal(value, copy, err_msg="an argument was written over")
        if rounding:
            assert_same_results(got, without(*values), rounding)
            assert_same_results(got, stock(*values), rounding)
        else:
            assert_same_bits(got, without(*values), "without the rewrite")
            assert_equal(got, stock(*values), "by stock")
        kept += [(result, np.copy(result)) for result in got]
    for result, copy in kept:
        np.testing.assert_array_equal(result, copy, err_msg="a later call wrote over a result")
    return ours


def note(function: Function) -> None:
    """Let Hypothesis count in how many examples there was something to do."""
    event("rewritten" if is_rewritten(function) else "left as it was")


# Random graphs ----------------------------------------------------------------------------


@given(join_programs())
def test_joins_in_python(program: JoinProgram) -> None:
    note(check(build_join(program), "py"))


@pytest.mark.parametrize("linker", COMPILERS)
@few_examples
@given(program=join_programs(4))
def test_joins_compiled(linker: str, program: JoinProgram) -> None:
    note(check(build_join(program), linker))


@given(slice_programs())
def test_slices_in_python(program: SliceProgram) -> None:
    note(check(build_slices(program), "py"))


@pytest.mark.parametrize("linker", COMPILERS)
@few_examples
@given(program=slice_programs(3))
def test_slices_compiled(linker: str, program: SliceProgram) -> None:
    rounding = 1e-12 if any(kind % 6 == 1 for kind, *_ in program.writes) else 0.0
    note(check(build_slices(program), linker, rounding=rounding))


@given(join_programs())
def test_every_join_is_explained(program: JoinProgram) -> None:
    case = build_join(program)
    function = compiled(case.inputs, case.outputs)
    reports = pytensor_fuse.explain_joins(function)
    assert len(ops_named(function, "WriteJoin")) == sum(r.eliminated for r in reports)
    kept = [report for report in reports if not report.eliminated]
    assert len(ops_named(function, "Join")) <= len(kept)
    assert all(str(report.reason.value) in str(report) for report in kept)


@few_examples
@given(join_programs(4))
def test_joins_in_debug_mode(program: JoinProgram) -> None:
    case = build_join(program)
    function = compiled(case.inputs, case.outputs, debug_mode(c_code=False))
    for values in case.calls:
        function(*values)


@few_examples
@given(slice_programs(3))
def test_slices_in_debug_mode(program: SliceProgram) -> None:
    case = build_slices(program)
    function = compiled(case.inputs, case.outputs, debug_mode(c_code=False))
    for values in case.calls:
        function(*values)


def debug_mode(*, c_code: bool) -> DebugMode:
    return DebugMode(
        optimizer="fast_run",
        stability_patience=2,
        check_c_code=c_code,
        check_py_code=True,
        check_isfinite=False,
        require_matching_strides=False,
    )


# What is joined ---------------------------------------------------------------------------


def vectors(n: int) -> list[Variable]:
    return [pt.vector(f"x{i}") for i in range(n)]


def numbers(*lengths: int) -> list[np.ndarray]:
    return [np.random.default_rng(i).normal(size=n) for i, n in enumerate(lengths)]


def joined(streams: Sequence[Variable], axis: int = 0) -> Variable:
    return pt.concatenate(list(streams), axis=axis)


def _shared_kernel(x: Variable, y: Variable) -> list[Variable]:
    common = pt.exp(x)
    return [common + 1, pt.tanh(y), common * common]


def _kernel_and_output(x: Variable, y: Variable) -> list[Variable]:
    common = pt.exp(x)
    return [common + 1, common * 2]


GRAPHS: dict[str, Callable[[Variable, Variable], list[Variable]]] = {
    "two kernels": lambda x, y: [joined([x * 2 + 1, pt.tanh(y)])],
    "single ops": lambda x, y: [joined([-x, pt.exp(y)])],
    "a kernel of two streams": lambda x, y: [joined(_shared_kernel(x, y))],
    "a kernel with another output": lambda x, y: [
        joined([_kernel_and_output(x, y)[0], y + 1]),
        _kernel_and_output(x, y)[1],
    ],
    "a stream and an input": lambda x, y: [joined([x * 2 + 1, y])],
    "the same stream twice": lambda x, y: [joined([x * 2 + 1, x * 2 + 1, y - 1])],
    "the same input twice": lambda x, y: [joined([y, x * 2 + 1, y])],
    "a stream that is an output": lambda x, y: [joined([x * 2 + 1, y - 1]), y - 1],
    "nested joins": lambda x, y: [joined([joined([x * 2 + 1, y - 1]), joined([pt.exp(y), -x])])],
    "a stream from a join": lambda x, y: [joined([pt.exp(joined([x * 2 + 1, y - 1])), x - 3])],
    "two joins of one stream": lambda x, y: [
        joined([x * 2 + 1, y - 1]),
        joined([pt.exp(y), x * 2 + 1]),
    ],
    "one kernel, two joins": lambda x, y: [
        joined([pt.exp(x) + 1, y - 1]),
        joined([y + 3, pt.exp(x) * 3]),
    ],
    "a stream of another": lambda x, y: [joined([x * 2 + 1, pt.tanh(x * 2 + 1)[::-1], y + 1])],
    "scalars": lambda x, y: [pt.stack([x.sum(), pt.exp(y.sum())]), joined([x + 1, y * y])],
    "integers": lambda x, y: [joined([x * 2 + 1, pt.arange(4) * 3])],
    "raveled": lambda x, y: [
        joined([(x[:, None] * y).ravel() * 2, pt.exp(x[:, None] + y).ravel()])
    ],
    "second axis": lambda x, y: [joined([x[:, None] * 2 + 1, pt.exp(x[:, None] + y)], axis=1)],
    "stacked": lambda x, y: [pt.stack([x * 2 + 1, pt.exp(x)]), pt.stack([y + 1, y * 3], axis=1)],
    "broadcast": lambda x, y: [joined([pt.ones_like(x) * pt.exp(y.sum()), pt.tanh(y)])],
}


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("name", GRAPHS)
def test_named_graphs(name: str, linker: str) -> None:
    x, y = vectors(2)
    calls = [numbers(5, 3), numbers(2, 2), numbers(0, 4), numbers(1, 1), numbers(4, 0)]
    strided = [laid_out(value, "reversed") for value in numbers(5, 3)]
    check(JoinCase([x, y], GRAPHS[name](x, y), [*calls, strided, calls[0]]), linker)


@pytest.mark.parametrize("name", GRAPHS)
def test_debug_mode(name: str) -> None:
    x, y = vectors(2)
    function = compiled([x, y], GRAPHS[name](x, y), debug_mode(c_code=bool(pytensor.config.cxx)))
    for values in (numbers(5, 3), numbers(1, 4)):
        function(*values)


NO_JOIN_LEFT = (
    "two kernels",
    "single ops",
    "a kernel of two streams",
    "a kernel with another output",
    "a stream and an input",
    "nested joins",
    "second axis",
)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("name", NO_JOIN_LEFT)
def test_joins_are_eliminated(name: str, linker: str) -> None:
    if (name, linker) == ("single ops", "py"):
        pytest.skip("NumPy's own function is faster than a kernel of Python code")
    x, y = vectors(2)
    function = compiled([x, y], GRAPHS[name](x, y), linker)
    assert not ops_named(function, "Join")
    assert is_rewritten(function)


@pytest.mark.parametrize("linker", LINKERS)
def test_operands_that_make_no_kernel_are_left_alone(linker: str) -> None:
    x, y = vectors(2)
    function = compiled([x, y], [joined([x, y[::-1]])], linker)
    assert not is_rewritten(function)


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


# Kernels ----------------------------------------------------------------------------------


def absorbed(function: Function) -> Counter[tuple[Any, ...]]:
    """What the fused kernels do besides their own work."""
    return Counter(
        (
            len([entry for entry in node.op.indexed_inputs if entry]),
            len([entry for entry in node.op.indexed_outputs if entry]),
            len([entry for entry in node.op.reduced_outputs if entry]),
        )
        for node in ops_named(function, "FusedElemwise")
    )


def indexed_and_reduced() -> tuple[list[Variable], list[Variable], list[np.ndarray]]:
    x, y = vectors(2)
    index = pt.vector("index", dtype="int64")
    taken = pt.exp(x[index]) * y
    outputs = [joined([taken + 1, pt.tanh(y), x * 2]), taken.sum()]
    rng = np.random.default_rng(3)
    return [x, y, index], outputs, [*numbers(5, 9), rng.integers(5, size=9)]


@pytest.mark.skipif(
    not hasattr(pytensor.tensor.rewriting, "fused_elemwise"), reason="PyTensor 3.0 has none"
)
def test_fused_elemwise_absorbs_what_it_did() -> None:
    inputs, outputs, values = indexed_and_reduced()
    ours = check(JoinCase(inputs, outputs, [values]), "numba", rounding=1e-12)
    without = compiled(inputs, outputs, "numba", joins=False)
    assert absorbed(ours) == absorbed(without)
    assert sum(absorbed(ours).values())


@pytest.mark.parametrize("linker", LINKERS)
def test_a_kernel_of_several_streams_is_one(linker: str) -> None:
    x, y = vectors(2)
    common = pt.exp(x)
    outputs = [joined([common + 1, y * 2, common * common, pt.tanh(common)]), common - 1]
    function = check(JoinCase([x, y], outputs, [numbers(4, 3), numbers(0, 2)]), linker)
    assert len(kernels_of(function)) == 2


def test_scalar_graphs_read_nothing_new() -> None:
    """A kernel computes from its operands alone, not from what its part held before."""
    x, y = vectors(2)
    function = compiled([x, y], joined([x * 2 + 1, pt.tanh(y)]), "py")
    for node in kernels_of(function):
        targets = set(node.op.inplace_pattern.values())
        fgraph = getattr(node.op.scalar_op, "fgraph", None)
        if fgraph is not None:
            assert all(not fgraph.clients.get(fgraph.inputs[i]) for i in targets)


# A model ----------------------------------------------------------------------------------

N_ROWS, N_GROUPS = 30, 4


def packed_gradient() -> tuple[list[Variable], list[Variable], list[list[np.ndarray]]]:
    """The packed gradient of a hierarchical regression: two scalars, two scales, three arrays."""
    theta = pt.vector("theta")
    group = pt.vector("group", dtype="int64")
    x, y = pt.vector("x"), pt.vector("y")
    shapes = [(), (), (2,), (N_GROUPS, 2), (N_ROWS,), (), ()]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes]).tolist()
    parameters = [
        theta[end - int(np.prod(shape)) : end].reshape(shape)
        for end, shape in zip(ends, shapes, strict=True)
    ]
    a, b, log_tau, z, effect, log_omega, log_sigma = parameters
    of_group = (z * pt.exp(log_tau))[group]
    mu = a + of_group[:, 0] + (b + of_group[:, 1]) * x + pt.exp(log_omega) * effect
    residual = (y - mu) * pt.exp(-log_sigma)
    logp = (
        -0.5 * pt.sqr(residual).sum()
        - N_ROWS * log_sigma
        - 0.5 * (pt.sqr(z).sum() + pt.sqr(effect).sum() + pt.sqr(a) + pt.sqr(b))
        - 0.5 * (pt.exp(2 * log_tau) - 2 * log_tau).sum()
        - 0.5 * (pt.exp(2 * log_omega) + pt.exp(2 * log_sigma))
        + log_omega
        + log_sigma
    )
    gradients = pytensor.grad(logp, parameters)
    calls = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        groups = rng.integers(N_GROUPS, size=N_ROWS)
        data = [rng.normal(size=N_ROWS) for _ in range(2)]
        calls.append([rng.normal(scale=0.3, size=ends[-1]), groups, *data])
    return [theta, group, x, y], [logp, joined([g.ravel() for g in gradients])], calls


@pytest.mark.parametrize("linker", LINKERS)
def test_packed_gradient(linker: str) -> None:
    inputs, outputs, calls = packed_gradient()
    rounding = 1e-12 if linker == "numba" else 0.0
    function = check(JoinCase(inputs, outputs, calls), linker, rounding=rounding)
    values = calls[0]
    _, gradient = function(*values)
    direction = np.random.default_rng(9).normal(size=gradient.shape)
    step = 1e-6
    above, below = (function(values[0] + s * direction, *values[1:])[0] for s in (step, -step))
    np.testing.assert_allclose((above - below) / (2 * step), gradient @ direction, rtol=1e-5)


def test_packed_gradient_in_debug_mode() -> None:
    inputs, outputs, calls = packed_gradient()
    function = compiled(inputs, outputs, debug_mode(c_code=False))
    function(*calls[0])


# Modes ------------------------------------------------------------------------------------


def test_clones_compile_to_the_same_graph() -> None:
    inputs, outputs, _ = packed_gradient()
    described = []
    for _ in range(2):
        new = [inp.type(inp.name) for inp in inputs]
        copies = clone_replace(outputs, dict(zip(inputs, new, strict=True)))
        function = compiled(new, copies, "py")
        described.append([str(node.op) for node in function.maker.fgraph.toposort()])
    assert described[0] == described[1]


@pytest.mark.parametrize("mode", ["JAX", "PYTORCH", "MLX"])
def test_other_backends_have_no_such_rewrite(mode: str) -> None:
    names = {getattr(rewriter, "name", None) for rewriter in flattened(get_mode(mode).optimizer)}
    assert names
    assert REWRITE not in names


def flattened(rewriter: Any) -> list[Any]:
    inner = getattr(rewriter, "data", None) or []
    return [rewriter, *(found for part in inner for found in flattened(part))]


def test_stock_is_stock_again() -> None:
    x, y = vectors(2)
    outputs = joined([x * 2 + 1, pt.tanh(y)])
    assert is_rewritten(compiled([x, y], outputs))
    stock = compiled([x, y], outputs, ours=False)
    assert not is_rewritten(stock)
    assert ops_named(stock, "Join")


@pytest.mark.skipif(
    not hasattr(pytensor.tensor.rewriting, "fused_elemwise"), reason="PyTensor 3.0 has none"
)
def test_joins_of_single_elements_are_left_to_the_pass_that_makes_them_scalars() -> None:
    x, y = (pt.tensor(name, dtype="float64", shape=(n,)) for name, n in (("x", 1), ("y", 4)))
    outputs = joined([x * 2 + 1, -y, y + 1])
    without = compiled([x, y], outputs, "numba", joins=False)
    with pytensor_fuse.enabled():
        ours = pytensor.function([x, y], outputs, mode=mode_of("numba"))
    assert not is_rewritten(ours)
    assert len(ops_named(ours, "Elemwise")) == len(ops_named(without, "Elemwise"))


@pytest.mark.parametrize("length", [1000, None])
def test_slices_counted_from_the_end(length: int | None) -> None:
    x = pt.tensor("x", dtype="float64", shape=(length,))
    outputs = pt.zeros(x.shape[0] + 2)[1:-1].set(x * 2 + 1)
    function = check(JoinCase([x], [outputs], [numbers(1000)]), "numba")
    # Bounds have to be constants once the length is known.
    assert is_rewritten(function) == (length is not None)
