"""`join_buffer_elimination`: what it writes in place, what it leaves, and that results stay."""

from importlib import import_module

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import Feature, ReplaceValidate
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.utils import InconsistencyError
from pytensor.link.vm import VMLinker
from pytensor.raise_op import Assert
from pytensor.scalar.basic import UnaryScalarOp, upgrade_to_float
from pytensor.tensor.basic import Alloc, AllocEmpty, Join
from pytensor.tensor.blas import Gemv
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.subtensor import IncSubtensor

import pytensor_fuse
from pytensor_fuse._joins.eliminate import eliminate_joins
from pytensor_fuse._joins.ops.elemwise import WriteElemwise
from pytensor_fuse._joins.ops.fill import WriteFill
from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.ops.layout import JoinLayout, dim_length
from pytensor_fuse._joins.ops.split import WriteSplit
from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.reports import explain_joins
from pytensor_fuse._pytensor.targets import Target
from support.joins import always_worth_it

MODES = ["NUMBA", "CVM"]
WRITTEN = JoinReason.WRITTEN


@pytest.fixture(autouse=True)
def _enabled():
    with pytensor_fuse.enabled():
        yield


def nodes(f, *kinds):
    return [node for node in f.maker.fgraph.toposort() if isinstance(node.op, kinds)]


def n_kernels(f):
    """Count kernels, also those that PyTensor has merged indexing or reductions into."""
    return len([n for n in nodes(f, object) if "Elemwise" in type(n.op).__name__])


def check(inputs, outputs, mode, *calls, **options):
    """Compile with and without the pass, compare results of ``calls``, return the function."""
    mode = get_mode(mode)
    without = pytensor.function(
        inputs, outputs, mode=mode.excluding("join_buffer_elimination"), **options
    )
    f = pytensor.function(inputs, outputs, mode=mode, **options)
    for values in calls:
        want, result = without(*values), f(*values)
        if not isinstance(want, list):
            want, result = [want], [result]
        for expected, computed in zip(want, result, strict=True):
            assert computed.dtype == expected.dtype
            np.testing.assert_allclose(computed, expected, rtol=1e-12, equal_nan=True)
    assert n_kernels(f) == n_kernels(without)
    return f


@pytest.fixture
def _always_worth_it():
    with always_worth_it():
        yield


def reasons(f):
    [report] = explain_joins(f)
    return report.streams


def rand(*shape):
    return np.random.default_rng(sum(shape)).random(shape)


x, y, z = pt.vectors("xyz")
A, B = pt.matrices("AB")


@pytest.mark.parametrize("mode", MODES)
def test_kernels_write_into_the_result(mode):
    streams = [v * 2 + i for i, v in enumerate((x, y, z))]
    f = check(
        [x, y, z],
        pt.concatenate(streams),
        mode,
        (rand(3), rand(4), rand(5)),
        (rand(0), rand(1), rand(7)),
        (rand(8)[::-1], rand(9)[::2], rand(2)),
    )
    assert not nodes(f, Join)
    assert reasons(f) == (WRITTEN,) * 3
    assert len(nodes(f, WriteElemwise)) == 3


@pytest.mark.usefixtures("_always_worth_it")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [0, 1])
def test_joins_of_matrices(mode, axis):
    out = pt.concatenate([A * 2 + 1, pt.exp(B)], axis=axis)
    values = [(rand(3, 4), rand(3, 4)), (rand(3, 4).T, rand(4, 3)[:, ::-1])]
    f = check([A, B], out, mode, *values)
    assert reasons(f) == (WRITTEN, WRITTEN)
    with pytest.raises(ValueError, match="must match"):
        f(rand(3, 4), rand(2, 5))


@pytest.mark.parametrize("mode", MODES)
def test_raveled_streams(mode):
    out = pt.concatenate([x * 2 + 1, (pt.exp(A) + 1).ravel(), (A * B).reshape((-1,))])
    f = check([x, A, B], out, mode, (rand(3), rand(4, 5), rand(4, 5)))
    assert reasons(f) == (WRITTEN,) * 3
    f(rand(3), rand(5, 4).T, rand(4, 5))
    with pytest.raises(ValueError, match=r"(?i)shape|dimension"):
        f(rand(3), rand(4, 5), rand(5, 4))


@pytest.mark.usefixtures("_always_worth_it")
@pytest.mark.parametrize("mode", MODES)
def test_stacked_streams(mode):
    f = check([x, y], pt.stack([pt.exp(x) * 2, pt.sin(y)]), mode, (rand(40), rand(40)))
    assert reasons(f) == (WRITTEN, WRITTEN)


@pytest.mark.usefixtures("_always_worth_it")
@pytest.mark.parametrize("mode", MODES)
def test_nested_joins_are_one(mode):
    inner = pt.concatenate([x * 2 + 1, y])
    f = check([x, y], pt.concatenate([inner, pt.exp(y)]), mode, (rand(3), rand(4)))
    assert not nodes(f, Join)
    [join] = nodes(f, WriteJoin)
    assert join.op.written == (True, False, True)


@pytest.mark.parametrize("mode", MODES)
def test_one_kernel_writes_several_streams(mode):
    a, b = pt.exp(x) * y, pt.exp(x) + y
    f = check([x, y, z], pt.concatenate([a, z, b]), mode, (rand(6), rand(6), rand(2)))
    [kernel] = nodes(f, WriteElemwise)
    assert len(kernel.outputs) == 2
    assert set(kernel.op.inplace_pattern) == {0, 1}


@pytest.mark.parametrize("mode", MODES)
def test_a_kernel_writes_a_stream_and_another_output(mode):
    a, b = pt.exp(x) * y, pt.exp(x) + y
    out = [pt.concatenate([a, pt.sin(z)]), b]
    f = check([x, y, z], out, mode, (rand(6), rand(6), rand(2)))
    assert reasons(f) == (WRITTEN, WRITTEN)


@pytest.mark.parametrize("mode", MODES)
def test_a_kernel_writes_into_two_results(mode):
    a, b = pt.exp(x) * y, pt.exp(x) + y
    out = [pt.concatenate([a, pt.sin(z)]), pt.concatenate([b, pt.cos(z) + 1])]
    f = check([x, y, z], out, mode, (rand(6), rand(6), rand(2)))
    assert not nodes(f, Join)


@pytest.mark.parametrize("mode", MODES)
def test_equal_shapes_are_not_one_memory(mode):
    out = [pt.concatenate([pt.exp(x), pt.sin(y)]), pt.concatenate([pt.cos(x), pt.tan(y)])]
    f = check([x, y], out, mode, (rand(6), rand(7)))
    assert len(nodes(f, WriteSplit)) == 2
    first, second = f(rand(6), rand(7))
    assert not np.shares_memory(first, second)


@pytest.mark.parametrize("mode", MODES)
def test_streams_with_other_readers_are_copied(mode):
    shared = pt.exp(x) + 1
    out = [pt.concatenate([shared, y * 2 + 1]), shared]
    f = check([x, y], out, mode, (rand(3), rand(4)))
    assert reasons(f) == (JoinReason.OTHER_CLIENTS, WRITTEN)
    f = check([x, y], pt.concatenate([shared, shared, y * 2 + 1]), mode, (rand(3), rand(4)))
    assert reasons(f) == (JoinReason.OTHER_CLIENTS, JoinReason.OTHER_CLIENTS, WRITTEN)


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


@pytest.mark.parametrize("mode", MODES)
def test_streams_are_cast_as_they_are_written(mode):
    i, u = pt.ivector("i"), pt.vector("u", dtype="float32")
    out = pt.concatenate([i * 2 + 1, pt.exp(u) * u, x * 2 + 1])
    values = np.arange(4, dtype="int32"), np.arange(3, dtype="float32"), rand(5)
    f = check([i, u, x], out, mode, values)
    assert reasons(f) == (WRITTEN,) * 3


@pytest.mark.parametrize("mode", MODES)
def test_lengths_that_a_written_kernel_decides(mode):
    # The second stream is as long as the kernel of the first says.
    a, b = pt.exp(x) * y, pt.exp(x) + y
    tail = pt.sin(pt.arange(b.sum().astype("int64")).astype("float64"))
    f = check([x, y], pt.concatenate([a, tail]), mode, (rand(6), rand(6)))
    assert JoinReason.LENGTH in reasons(f) or reasons(f)[0] is JoinReason.OTHER_CLIENTS


@pytest.mark.parametrize("mode", MODES)
def test_small_results_are_left_alone(mode):
    vectors = [pt.vector(shape=(2,)) for _ in range(2)]
    f = check(vectors, pt.concatenate([v * 2 + 1 for v in vectors]), mode, (rand(2), rand(2)))
    [report] = explain_joins(f)
    assert report.reason is JoinReason.SMALL
    assert nodes(f, Join)


@pytest.mark.parametrize("mode", MODES)
def test_updates_of_shared_variables(mode):
    state = pytensor.shared(np.ones(7), name="state")
    out = pt.concatenate([state[:3] * 2, pt.exp(state[3:])])
    f = pytensor.function([], [], updates={state: out}, mode=mode)
    assert not nodes(f, Join)
    want = np.ones(7)
    for _ in range(3):
        f()
        want = np.concatenate([want[:3] * 2, np.exp(want[3:])])
        np.testing.assert_allclose(state.get_value(), want)


@pytest.mark.parametrize("mode", MODES)
def test_results_are_used_further(mode):
    joined = pt.concatenate([x * 2 + 1, pt.exp(y)])
    out = [pt.sin(joined) * joined, joined.sum()]
    check([x, y], out, mode, (rand(6), rand(7)))


def test_results_of_calls_are_apart():
    for mode in MODES:
        f = pytensor.function([x, y], pt.concatenate([x * 2 + 1, pt.exp(y)]), mode=mode)
        first = f(rand(3), rand(4))
        kept = first.copy()
        second = f(rand(3) + 1, rand(4) + 1)
        assert not np.shares_memory(first, second)
        np.testing.assert_array_equal(first, kept)
        assert first.flags.writeable


def test_shapes_that_kernels_refuse():
    for mode in MODES:
        f = pytensor.function([x, y, z], pt.concatenate([x + y, z * 2]), mode=mode)
        for values in ((rand(3), rand(4), rand(2)), (rand(1), rand(4), rand(2))):
            with pytest.raises(ValueError, match=r"(?i)shape|broadcast"):
                f(*values)
        f(rand(3), rand(3), rand(2))


def test_debugmode_agrees():
    a, b = pt.exp(x) * y, pt.exp(x) + y
    out = [pt.concatenate([a, z, (A * 2 + 1).ravel()]), b]
    f = pytensor.function([x, y, z, A], out, mode="DebugMode")
    assert nodes(f, WriteJoin)
    values = rand(6), rand(6), rand(2), rand(3, 4)
    joined, other = f(*values)
    e = np.exp(values[0])
    want = [e * values[1], values[2], values[3].ravel() * 2 + 1]
    np.testing.assert_allclose(joined, np.concatenate(want))
    np.testing.assert_allclose(other, e + values[1])


def test_debugmode_leaves_parts_that_interleave():
    f = pytensor.function([A, B], pt.concatenate([A * 2, B + 1], axis=1), mode="DebugMode")
    [report] = explain_joins(f)
    assert report.reason is JoinReason.DEBUG


@pytest.mark.parametrize("mode", ["JAX", "PYTORCH", "MLX"])
def test_other_backends_do_not_run_it(mode):
    from pytensor.compile.mode import predefined_modes

    if mode not in predefined_modes:
        pytest.skip("not in this PyTensor")
    fgraph = pytensor.graph.FunctionGraph([x, y], [pt.concatenate([x * 2 + 1, pt.exp(y)])])
    predefined_modes[mode].optimizer.rewrite(fgraph)
    assert any(isinstance(node.op, Join) for node in fgraph.apply_nodes)


def test_it_can_be_excluded_and_disabled():
    out = pt.concatenate([x * 2 + 1, pt.exp(y)])
    f = pytensor.function([x, y], out, mode=get_mode("CVM").excluding("join_buffer_elimination"))
    assert nodes(f, Join)
    kept = get_mode("CVM").optimizer
    with pytensor_fuse.enabled(False):
        f = pytensor.function([x, y], out, mode="CVM")
        assert nodes(f, Join)
        assert explain_joins(f) == ()
        fgraph = pytensor.graph.FunctionGraph([x, y], [out])
        kept.rewrite(fgraph)
        assert any(isinstance(n.op, Join) for n in fgraph.apply_nodes)


def test_functions_are_copied_and_pickled():
    import pickle

    for mode in MODES:
        f = pytensor.function([x, y], pt.concatenate([x * 2 + 1, pt.exp(y)]), mode=mode)
        want = f(rand(3), rand(4))
        for other in (f.copy(), pickle.loads(pickle.dumps(f))):
            np.testing.assert_array_equal(other(rand(3), rand(4)), want)


@pytest.mark.parametrize("mode", MODES)
def test_joins_inside_scans(mode):
    step = lambda s: pt.concatenate([s[:2] * 2, pt.exp(-s[2:])])  # noqa: E731
    states = pytensor.scan(step, outputs_info=[x], n_steps=3, return_updates=False)
    f = pytensor.function([x], states, mode=mode)
    want = rand(5)
    for state in f(rand(5)):
        want = np.concatenate([want[:2] * 2, np.exp(-want[2:])])
        np.testing.assert_allclose(state, want)


@pytest.mark.parametrize("mode", MODES)
def test_many_streams(mode):
    vectors = [pt.vector() for _ in range(60)]
    out = pt.concatenate([v * float(i + 2) + 1 for i, v in enumerate(vectors)])
    check(vectors, out, mode, [rand(i) for i in range(60)])


def test_kernels_still_take_indexing_in():
    fused = pytest.importorskip("pytensor.tensor.rewriting.fused_elemwise")
    i = pt.lvector("i")
    out = pt.concatenate([pt.exp(x[i]) * 2 + y, z * 2 + 1])
    f = check([x, i, y, z], out, "NUMBA", (rand(5), np.array([1, 1, 4]), rand(3), rand(2)))
    assert len(nodes(f, fused.FusedElemwise)) == 1
    assert reasons(f) == (WRITTEN, WRITTEN)


@pytest.mark.parametrize("mode", MODES)
def test_packed_gradient(mode):
    a, b = pt.scalars("ab")
    energy = (pt.exp(a) * x * y).sum() + (pt.tanh(b) * y**2).sum() + ((A * x) ** 2).sum()
    grads = pytensor.grad(energy, [a, b, x, y, A])
    out = pt.concatenate([g.ravel() for g in grads])
    values = 0.3, 0.4, rand(50), rand(50), rand(40, 50)
    check([a, b, x, y, A], out, mode, values)


def test_reports_say_why():
    out = pt.concatenate([x * 2 + 1, y, pt.exp(x)])
    [report] = explain_joins(pytensor.function([x, y], out, mode="CVM"))
    assert report.eliminated
    assert "2 of 3 streams written" in str(report)
    assert "stream 1 is copied" in str(report)


def test_elemwise_count_is_kept():
    f = pytensor.function([x, y], pt.concatenate([x * 2 + 1, pt.exp(y)]), mode="CVM")
    assert len(nodes(f, Elemwise)) == 2


def known(*shape):
    """An input whose lengths are known: others may turn out to be 1, and be broadcast."""
    return pt.tensor("known", dtype="float64", shape=shape)


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
def test_traces_do_not_multiply_with_the_joins_of_a_kernel(mode):
    outputs = [
        pt.concatenate([pt.exp(x * float(i)), pt.sin(x + float(i)) * 2]) for i in range(1, 9)
    ]
    f = pytensor.function([x], outputs, mode=mode)
    for node in nodes(f, WriteElemwise):
        for output in node.outputs:
            assert len(getattr(output.tag, "trace", [])) <= 4 * len(node.outputs)


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
def test_lengths_of_copied_streams_are_read_from_inputs(mode):
    # The kernel of the last also gives what is summed and scattered into the others.
    i = pt.lvector("i")
    a = pt.scalar("a")
    residual = z - (a * y + x[i])
    loss = (residual**2 * pt.exp(a)).sum()
    out = pt.concatenate([g.ravel() for g in pytensor.grad(loss, [a, x, y, z])])
    values = 0.5, rand(4), rand(6), rand(6), np.array([0, 1, 1, 2, 3, 3])
    f = check([a, x, y, z, i], out, mode, values)
    assert reasons(f)[2:] == (WRITTEN, WRITTEN)


def test_a_stream_alone_is_written_where_that_gains():
    out = pt.concatenate([x * 2 + 1, y])
    [report] = explain_joins(pytensor.function([x, y], out, mode="NUMBA"))
    assert report.reason is JoinReason.FEW
    long = pt.vector("long", shape=(5000,))
    f = check([long, y], pt.concatenate([long * 2 + 1, y]), "NUMBA", (rand(5000), rand(3)))
    assert nodes(f, WriteJoin)


@pytest.mark.usefixtures("_always_worth_it")
@pytest.mark.parametrize("mode", MODES)
def test_other_outputs_of_kernels_still_overwrite_inputs(mode):
    # The kernel of the gradients also gives what is summed up later, over what nothing needs.
    spare = pt.cumsum(x)
    a, b = pt.exp(spare) * y, pt.exp(spare) + y
    f = check([x, y, z], [pt.concatenate([a, pt.sin(z)]), b], mode, (rand(6), rand(6), rand(2)))
    [kernel] = [node for node in nodes(f, WriteElemwise) if len(node.outputs) == 2]
    assert len(kernel.op.inplace_pattern) == 2
    state = pytensor.shared(np.ones(6), name="state")
    a, b = pt.exp(spare) * state, pt.exp(spare) + state
    f = pytensor.function(
        [x, z], pt.concatenate([a, pt.sin(z)]), updates={state: b}, mode=get_mode(mode)
    )
    [kernel] = [node for node in nodes(f, WriteElemwise) if len(node.outputs) == 2]
    [written_over] = [
        kernel.inputs[i] for i in kernel.op.inplace_pattern.values() if kernel.inputs[i].name
    ]
    assert written_over.name == "state"
    f(rand(6), rand(2))
    np.testing.assert_allclose(state.get_value(), np.exp(np.cumsum(rand(6))) + 1)


PYTHON = Mode(linker="py", optimizer="fast_run")


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


@pytest.mark.usefixtures("_always_worth_it")
def test_one_scalar_op_is_run_by_numpy():
    f = check(
        [x, y, z, A],
        pt.concatenate([pt.exp(x), z + y, pt.tanh(A).ravel()]),
        PYTHON,
        (rand(5), rand(6), rand(6), rand(2, 3)),
    )
    kernels = nodes(f, WriteElemwise)
    assert len(kernels) == 3
    assert all(node.tag.alone is not None for node in kernels)
    i = pt.ivector("i")
    values = np.arange(1, 4, dtype="int32"), rand(5)
    check([i, x], pt.concatenate([pt.sqrt(i), -x]), PYTHON, values)
    with pytest.raises(ValueError, match=r"(?i)shape|broadcast"):
        f(rand(5), rand(5), rand(6), rand(2, 3))


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


def test_contiguous_rows_of_any_number_of_dimensions():
    tensors = pt.tensor4s("tuv")
    t, u, v = tensors
    shapes = (2, 3, 4, 20), (1, 3, 1, 17), (2, 0, 3, 18), (2, 3, 2, 0), (3, 2, 2, 5)
    values = [(rand(*shape),) * 3 for shape in shapes]
    values += [
        (rand(20, 4, 3, 2).T, rand(2, 3, 4, 20), rand(2, 3, 4, 40)[..., ::-2]),
        (rand(2, 3, 4, 20),) * 2 + (rand(3, 4, 20, 2).transpose(3, 0, 1, 2),),
    ]
    for axis in (1, 2, 3):
        out = pt.concatenate([t * 2 + x.sum(), u - 1, pt.exp(v)], axis=axis)
        f = check([*tensors, x], out, "CVM", *((*case, rand(3)) for case in values))
        assert len(nodes(f, WriteElemwise)) == 3


def test_single_elements_stay_scalars_in_numba():
    one = pt.vector("one", shape=(1,))
    f = check([one, x, y], pt.concatenate([one * 2, x + 1, -y]), "NUMBA", ([1.0], rand(3), rand(4)))
    [report] = explain_joins(f)
    assert report.reason is JoinReason.FEW


@pytest.mark.usefixtures("_always_worth_it")
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


@pytest.mark.usefixtures("_always_worth_it")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [0, 1])
def test_blocks_that_are_filled_with_a_number(mode, axis):
    rows, a = pt.lscalar("rows"), pt.scalar("a")
    out = pt.concatenate([A * 2 + 1, pt.alloc(a, rows, 3)], axis=axis)
    f = check([A, rows, a], out, mode, (rand(3, 3), 3, 0.5), (rand(1, 3), 1, 0.5))
    assert reasons(f) == (WRITTEN, WRITTEN)
    with pytest.raises(ValueError, match="must match"):
        f(rand(2, 4), 3, 0.5)


@pytest.mark.parametrize("mode", MODES)
def test_what_surrounds_an_assignment_is_filled(mode):
    v = pt.vector("v", shape=(2000,))
    f = check([v], pt.zeros(2500)[300:2300].set(v * 2 + 1), mode, (rand(2000),))
    assert not nodes(f, Alloc)
    assert reasons(f) == (WRITTEN,) * 3


@pytest.mark.usefixtures("_always_worth_it")
def test_debugmode_agrees_about_what_is_filled():
    n = pt.lscalar("n")
    out = pt.concatenate([pt.alloc(y[0], n), x * 2 + 1])
    f = pytensor.function([x, y, n], out, mode="DebugMode")
    assert nodes(f, WriteFill)
    np.testing.assert_allclose(f([1.0, 2.0], [7.0], 2), [7, 7, 3, 5])


@pytest.mark.parametrize(
    "mode", ["CVM", Mode(linker="cvm", optimizer="fast_run").excluding("fusion")]
)
def test_products_with_vectors_are_written_by_blas_ops(mode):
    out = pt.concatenate([A @ x, y * 2 + 1, A @ (x + 1)])
    f = check(
        [A, x, y], out, mode, (rand(40, 3), rand(3), rand(4)), (rand(3, 2).T, rand(3), rand(0))
    )
    assert reasons(f) == (WRITTEN,) * 3
    assert not nodes(f, AllocEmpty)
    assert all(node.op.inplace for node in nodes(f, Gemv))
    infinite = np.full((3, 3), np.inf)
    np.testing.assert_array_equal(f(infinite, np.ones(3), []), np.full(6, np.inf))
    added = pt.concatenate([y + A @ x, x * 2 + 1])
    f = check([A, x, y], added, mode, (rand(4, 3), rand(3), rand(4)))
    assert reasons(f)[0] is not WRITTEN or not nodes(f, Gemv)


def test_debugmode_agrees_about_products():
    f = pytensor.function([A, x, y], pt.concatenate([A @ x, y * 2 + 1]), mode="DebugMode")
    assert nodes(f, WriteJoin)
    np.testing.assert_allclose(f(np.ones((2, 3)), np.ones(3), [1.0]), [3, 3, 3])


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
@pytest.mark.usefixtures("_always_worth_it")
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
def test_vectors_of_numbers_are_reported(mode):
    a, b = pt.scalars("ab")
    f = pytensor.function([a, b], pt.stack([pt.exp(a) * 2, pt.tanh(b)]), mode=mode)
    assert [report.reason for report in explain_joins(f)] == [JoinReason.SCALARS]


class Refusing(Feature):
    """Counts validations; refuses graphs in which joins of one dtype are eliminated."""

    def __init__(self, dtype, at_once):
        self.dtype = dtype
        self.at_once = at_once
        self.validations = 0

    def _refuse(self, node):
        if node is not None and isinstance(node.op, WriteJoin) and node.op.dtype == self.dtype:
            raise InconsistencyError(f"no {self.dtype}")

    def on_change_input(self, fgraph, node, i, old, new, reason):
        if self.at_once:
            self._refuse(new.owner)

    def on_validate(self, fgraph):
        self.validations += 1
        for node in fgraph.apply_nodes:
            self._refuse(node)


def graph_of_joins(n, *features):
    u, v = (pt.tensor(dtype=dtype, shape=(1000,)) for dtype in ("float64", "float32"))
    joins = [pt.concatenate([w * np.int8(i), w + np.int8(i)]) for i in range(n) for w in (u, v)]
    fgraph = FunctionGraph([u, v], joins)
    for feature in (ReplaceValidate(), DestroyHandler(), *features):
        fgraph.attach_feature(feature)
    return fgraph


def test_joins_are_validated_together():
    feature = Refusing(None, at_once=False)
    reports = eliminate_joins(graph_of_joins(20, feature), Target.C)
    assert [report.reason for report in reports] == [WRITTEN] * 40
    assert feature.validations == 1


@pytest.mark.parametrize("at_once", [False, True])
def test_a_join_that_a_feature_refuses_stays(at_once):
    fgraph = graph_of_joins(3, Refusing("float32", at_once))
    reports = eliminate_joins(fgraph, Target.C)
    assert sorted(r.reason.name for r in reports) == ["REFUSED"] * 3 + ["WRITTEN"] * 3
    kinds = [(output.owner.op.__class__, output.type.dtype) for output in fgraph.outputs]
    assert kinds == [(WriteJoin, "float64"), (Join, "float32")] * 3
    fgraph.check_integrity()


def test_equal_kernels_are_made_once():
    u = pt.vector("u", shape=(1000,))
    fgraph = FunctionGraph([u], [pt.concatenate([u * 2, (u + 1) * 2, u + 2])])
    fgraph.attach_feature(ReplaceValidate())
    fgraph.attach_feature(DestroyHandler())
    [report] = eliminate_joins(fgraph, Target.C)
    assert report.eliminated
    ops = [id(node.op) for node in fgraph.toposort() if isinstance(node.op, WriteElemwise)]
    assert (len(ops), len(set(ops))) == (3, 2)


class Failing(Refusing):
    """Raises what is no refusal."""

    def _refuse(self, node):
        if isinstance(node.op, WriteJoin):
            raise RuntimeError("a bug of a feature")


def test_a_failure_leaves_the_graph_as_it_was():
    fgraph = graph_of_joins(3, Failing(None, at_once=False))
    before = [node.op for node in fgraph.toposort()]
    with pytest.raises(RuntimeError, match="a bug of a feature"):
        eliminate_joins(fgraph, Target.C)
    assert [node.op for node in fgraph.toposort()] == before
    fgraph.check_integrity()


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


@pytest.mark.usefixtures("_always_worth_it")
def test_a_kernel_of_which_python_writes_one_output():
    squares = x * x
    out = [pt.concatenate([squares, y * 2 + 1]), (squares > 0.2) & (squares < 2)]
    f = check([x, y], out, PYTHON, (rand(5), rand(4)))
    [kernel] = [node for node in nodes(f, WriteElemwise) if len(node.outputs) == 2]
    assert list(kernel.op.inplace_pattern) == [0]


@pytest.mark.usefixtures("_always_worth_it")
def test_small_integers_overflow_in_python_as_in_numpy():
    small = pt.vector("small", dtype="int8")
    values = np.array([1, 16, -128], "int8")
    f = check([small, x], pt.concatenate([small * small, x * 2]), PYTHON, (values, rand(4)))
    assert reasons(f) == (JoinReason.DTYPE, WRITTEN)
    out = pt.zeros(9, dtype="int8")[2:5].inc(pt.specify_shape(small, 3) * 2)
    check([small], out, PYTHON, (values,))


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


class Scaled(UnaryScalarOp):
    """Calls a function of its own support code."""

    def impl(self, a):
        return a * 2.5

    def c_support_code_apply(self, node, name):
        return f"static double {name}_scaled(double a) {{ return a * 2.5; }}"

    def c_code(self, node, name, inputs, outputs, sub):
        return f"{outputs[0]} = {name}_scaled({inputs[0]});"

    def c_code_cache_version(self):
        return (1,)


@pytest.mark.parametrize("more", [0, 1])
def test_scalar_ops_with_support_code(more):
    scaled = Elemwise(Scaled(upgrade_to_float, name="scaled"))
    f = check([x, y], pt.concatenate([scaled(x) + more, scaled(y)]), "CVM", (rand(20), rand(30)))
    assert reasons(f) == (WRITTEN, WRITTEN)


@pytest.mark.parametrize("mode", MODES)
def test_assignments_to_the_whole_tensor_still_compare_the_other_lengths(mode):
    a = pt.tensor("a", shape=(1000, None))
    b, c = pt.tensor("b", shape=(500, 5)), pt.tensor("c", shape=(500, 5))
    out = a[:500].set(pt.sin(b))[500:].set(pt.cos(c))
    f = check([a, b, c], out, mode, (rand(1000, 5), rand(500, 5), rand(500, 5)))
    with pytest.raises(ValueError, match=r"shape|broadcast|dimension"):
        f(rand(1000, 7), rand(500, 5), rand(500, 5))


def test_equal_joins_are_one_function_to_numbas_cache():
    dispatch = import_module("pytensor.link.numba.dispatch.basic")
    out = [pt.concatenate([pt.exp(x), pt.sin(y)]), pt.concatenate([pt.cos(x), pt.tan(y)])]
    f = check([x, y], out, "NUMBA", (rand(6), rand(7)))
    keys = [
        dispatch.numba_funcify_and_cache_key(node.op, node=node)[1] for node in nodes(f, WriteSplit)
    ]
    assert len(keys) == 2
    assert len(set(keys)) == 1


@pytest.mark.parametrize("huge", [False, True])
def test_large_results_in_huge_pages_or_not(huge, monkeypatch):
    write_numba = import_module("pytensor_fuse._joins.ops.numba")
    if huge and not write_numba._USES_HUGE_PAGES:
        pytest.skip("this system has none, or they are switched off")
    monkeypatch.setattr(write_numba, "_USES_HUGE_PAGES", huge)
    asked = "madvise" in "".join(
        library.get_llvm_str()
        for node in nodes(
            check(
                [x, y],
                pt.concatenate([x * 2, y + 1]),
                "NUMBA",
                (rand(300_000), rand(300_001)),
                (rand(3), rand(4)),
            ),
            WriteSplit,
        )
        for library in _libraries_of(write_numba, node)
    )
    assert asked is huge


def _libraries_of(write_numba, node):
    numba = import_module("numba")
    function, _ = write_numba._write_split(node.op, node)
    function.compile(tuple(numba.typeof(rand(3)) for _ in node.inputs))
    return [result.library for result in function.overloads.values()]


def test_parts_keep_their_memory_in_numba():
    numba = import_module("numba")
    write_numba = import_module("pytensor_fuse._joins.ops.numba")
    length = dim_length(0, 0)
    op = WriteSplit(JoinLayout(0, 1, "float64", ((length,), (length,)), (True, True)))
    split, _ = write_numba._write_split(op, op.make_node(x))

    @numba.njit
    def write_after_the_memory_is_dropped(a):
        _, first, second = split(a)
        other = np.full(2 * a.size, 7.0)
        first[:] = 1.0
        second[:] = 2.0
        return other.sum(), first.ctypes.data == other.ctypes.data

    for n in (100, 5000, 100_000):
        for _ in range(3):
            assert write_after_the_memory_is_dropped(rand(n)) == (14.0 * n, False)


def test_parts_are_borrowed_where_their_kernel_goes_with_the_join():
    both = pt.exp(x)
    out = [pt.concatenate([both * y, pt.sin(z)]), both + y]
    f = check([x, y, z], out, "NUMBA", (rand(6), rand(6), rand(2)))
    [split] = nodes(f, WriteSplit)
    [join] = nodes(f, WriteJoin)
    n_outputs = [len(stream.owner.outputs) for stream in join.inputs[1:]]
    assert n_outputs == [2, 1]
    assert split.op.borrowed == tuple(n == 1 for n in n_outputs)
