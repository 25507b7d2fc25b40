"""`join_buffer_elimination`: what it writes in place, what it leaves, and that results stay."""

import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import get_mode
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import Feature, ReplaceValidate
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.utils import InconsistencyError
from pytensor.tensor.basic import Join
from pytensor.tensor.elemwise import Elemwise

import pytensor_fuse
from pytensor_fuse._joins.eliminate import eliminate_joins
from pytensor_fuse._joins.ops.elemwise import WriteElemwise
from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.ops.split import WriteSplit
from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.reports import explain_joins
from pytensor_fuse._pytensor.ops.targets import Target
from support.joins.outcomes import MODES, WRITTEN, check, nodes, rand, reasons

pytestmark = pytest.mark.usefixtures("joins_on")

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


@pytest.mark.usefixtures("always_worth_it")
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


@pytest.mark.usefixtures("always_worth_it")
@pytest.mark.parametrize("mode", MODES)
def test_stacked_streams(mode):
    f = check([x, y], pt.stack([pt.exp(x) * 2, pt.sin(y)]), mode, (rand(40), rand(40)))
    assert reasons(f) == (WRITTEN, WRITTEN)


@pytest.mark.usefixtures("always_worth_it")
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


# Each stream has a kernel, which the compilers take half a second for.
@pytest.mark.parametrize(
    ("mode", "number"),
    [("NUMBA", 5), ("CVM", 5), (pytensor.compile.mode.Mode("py", "fast_run"), 60)],
)
def test_many_streams(mode, number):
    vectors = [pt.vector() for _ in range(number)]
    out = pt.concatenate([v * float(i + 2) + 1 for i, v in enumerate(vectors)])
    check(vectors, out, mode, [rand(i) for i in range(number)])


def test_kernels_still_take_indexing_in():
    fused = pytest.importorskip("pytensor.tensor.rewriting.fused_elemwise")
    i = pt.lvector("i")
    out = pt.concatenate([pt.exp(x[i]) * 2 + y, z * 2 + 1])
    f = check([x, i, y, z], out, "NUMBA", (rand(5), np.array([1, 1, 4]), rand(3), rand(2)))
    assert len(nodes(f, fused.FusedElemwise)) == 1
    # They could be; the join is kept.
    assert reasons(f) == (JoinReason.KEPT, JoinReason.KEPT)


@pytest.mark.parametrize("mode", MODES)
def test_packed_gradient(mode):
    a, b = pt.scalars("ab")
    energy = (pt.exp(a) * x * y).sum() + (pt.tanh(b) * y**2).sum() + ((A * x) ** 2).sum()
    grads = pytensor.grad(energy, [a, b, x, y, A])
    out = pt.concatenate([g.ravel() for g in grads])
    values = 0.3, 0.4, rand(50), rand(50), rand(40, 50)
    check([a, b, x, y, A], out, mode, values)


def test_elemwise_count_is_kept():
    f = pytensor.function([x, y], pt.concatenate([x * 2 + 1, pt.exp(y)]), mode="CVM")
    assert len(nodes(f, Elemwise)) == 2


@pytest.mark.parametrize("mode", MODES)
def test_traces_do_not_multiply_with_the_joins_of_a_kernel(mode):
    outputs = [
        pt.concatenate([pt.exp(x * float(i)), pt.sin(x + float(i)) * 2]) for i in range(1, 9)
    ]
    f = pytensor.function([x], outputs, mode=mode)
    for node in nodes(f, WriteElemwise):
        for output in node.outputs:
            assert len(getattr(output.tag, "trace", [])) <= 4 * len(node.outputs)


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
