"""What people make of PyTensor's classes is honoured: subclasses, own methods, replaced methods."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from abc import ABCMeta
from typing import Any
from unittest import mock

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.graph.features import Feature, FullHistory, History
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    FromFunctionNodeRewriter,
    SequentialNodeRewriter,
    WalkingGraphRewriter,
    node_rewriter,
)
from pytensor.graph.traversal import toposort
from pytensor.graph.utils import MissingInputError, Scratchpad
from pytensor.scalar.basic import Add, ScalarOp, add, upcast_out
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType

from pytensor_fuse._accelerators.instance_checks.virtual_bases import has_virtual_subclasses
from support.accelerated import assert_same_compiles, compile_and_record
from support.programs.processes import run_python
from support.switching import switched

both = pytest.mark.parametrize("on", [False, True], ids=["stock", "accelerated"])


@pytest.fixture(autouse=True)
def _switch(request: pytest.FixtureRequest) -> Any:
    on = "on" not in request.fixturenames or request.getfixturevalue("on")
    with switched(accelerators=on):
        yield


# Random graphs ----------------------------------------------------------------------------

UNARY = [pt.exp, pt.neg, pt.abs, pt.sqr, pt.reciprocal, pt.log1p, lambda x: x[::-1], lambda x: x.T]
BINARY = [pt.add, pt.mul, pt.sub, pt.true_div, pt.maximum, pt.pow]


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    numbers = st.integers(0, 40)
    return draw(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=14))


def built(program: list[tuple[int, int, int]]) -> Any:
    x, y, s = pt.vector("x"), pt.vector("y"), pt.scalar("s")
    made = [x, y, s, pt.constant(2.0), pt.constant(np.array([1.0, 1.0])), pt.constant(0)]
    for op, a, b in program:
        left, right = made[-1 - a % len(made)], made[-1 - b % len(made)]
        if op % 3 == 0:
            function: Any = UNARY[op % len(UNARY)]
            made.append(function(left) if left.type.ndim else pt.exp(left))
        else:
            made.append(BINARY[op % len(BINARY)](left, right))
    outputs = made[-3:]
    total = pt.add(*(pt.sum(out) for out in outputs))
    gradients = pt.grad(total, [x, y], disconnected_inputs="ignore")
    return [x, y, s], [*outputs, *gradients], {}


@given(program=programs())
def test_random_graphs(program: list[tuple[int, int, int]]) -> None:
    assert_same_compiles(lambda: built(program), True)


# Elemwise and types -----------------------------------------------------------------------


class OwnInfo(Elemwise):
    """Says that whatever it gives is a float32."""

    def get_output_info(self, *inputs: Any) -> Any:
        dtypes, shapes, inputs = super().get_output_info(*inputs)
        return ["float32" for _ in dtypes], shapes, inputs


class OwnScalar(ScalarOp):
    """Gives what its attribute says."""

    nin = 1
    dtype = "float64"

    def output_types(self, types: Any) -> Any:
        return [pytensor.scalar.basic.get_scalar_type(self.dtype)]

    def impl(self, x: Any) -> Any:
        return x


@both
def test_ops_with_methods_of_their_own_make_their_nodes(on: bool) -> None:
    x = pt.vector("x")
    op = OwnInfo(add)
    assert [op(x, x).type.dtype for _ in range(3)] == ["float32"] * 3

    plain: Any = Elemwise(Add(upcast_out))
    assert plain(x, x).type.dtype == "float64"
    plain.get_output_info = lambda *inputs: (["int8"], [(None,)], list(inputs))
    assert plain(x, x).type.dtype == "int8"

    scalar = OwnScalar()
    op = Elemwise(scalar)
    assert op(x).type.dtype == op(x).type.dtype == "float64"
    scalar.dtype = "float32"
    assert op(x).type.dtype == "float32"


@both
def test_casts_follow_the_configuration(on: bool) -> None:
    f, i = pt.fvector("f"), pt.ivector("i")
    seen = []
    for _ in range(2):
        for floatx in ("float32", "float64"):
            for policy in ("custom", "numpy+floatX"):
                with pytensor.config.change_flags(floatX=floatx, cast_policy=policy):
                    seen.append([(f + i).type.dtype, (i / i).type.dtype, (f * 1.5).type.dtype])
    assert seen[:4] == seen[4:]
    with switched(accelerators=False), pytensor.config.change_flags(floatX="float32"):
        assert (i / i).type.dtype == seen[0][1]


@both
def test_bad_inputs_of_elemwise(on: bool) -> None:
    a, b = pt.tensor("a", shape=(2,)), pt.tensor("b", shape=(3,))
    for _ in range(2):
        with pytest.raises(ValueError, match="Incompatible Elemwise input shapes"):
            a + b
        with pytest.raises(TypeError, match="Wrong number of inputs"):
            pt.exp(a, b)
    inplace = Elemwise(add, {0: 0})
    assert inplace(a, a).type.shape == (2,)
    with pytest.raises(TypeError, match="incompatible data types"):
        inplace(pt.tensor("c", shape=(2,), dtype="int8"), a)


@both
def test_types_of_tensors(on: bool) -> None:
    made = TensorType("float64", (None, 1, 3))
    assert list(vars(made)) == ["dtype", "shape", "broadcastable", "ndim", "name", "numpy_dtype"]
    assert made.broadcastable == (False, True, False)
    assert made.numpy_dtype == np.dtype("float64")
    assert TensorType(np.float32, shape=[np.int64(3), None], name="t").name == "t"
    assert TensorType("float64", shape=(True, False)).shape == (1, None)
    assert type(TensorType("float64", shape=(np.int64(3),)).shape[0]) is int
    assert TensorType("floatX", ()).dtype == pytensor.config.floatX
    assert TensorType("f8", 3).shape == (3,)
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(ValueError, match="maximum supported dimension"):
        TensorType("float64", (None,) * 65)
    with pytest.raises(ValueError, match="must be a boolean, integer or None"):
        TensorType("float64", ("x",))
    with pytest.raises(TypeError):
        TensorType("nothing", ())
    with pytest.raises(TypeError, match="Unsupported dtype"):
        TensorType("datetime64", ())


@both
def test_the_line_of_the_user_is_noted(on: bool) -> None:
    x = pt.vector("x")
    for _ in range(2):
        out = x + 2
        (trace,) = out.tag.trace
        assert trace[-1][0] == __file__
        assert trace[-1][3] == "out = x + 2"


# Instance checks --------------------------------------------------------------------------


def test_instance_checks_see_what_is_registered_later() -> None:
    run_python(
        """
        import pytensor, pytensor_fuse
        import pytensor.tensor as pt
        from pytensor.graph.op import Op
        from pytensor.graph.utils import MetaType

        pytensor_fuse.enable()
        assert MetaType.__instancecheck__ is type.__instancecheck__

        class Virtual:
            pass

        assert not isinstance(Virtual(), Op)
        Op.register(Virtual)
        assert isinstance(Virtual(), Op)
        assert isinstance(pt.exp, Op) and not isinstance(pt.vector(), Op)
        assert pytensor_fuse.status()["accelerators"].parts["instance_checks"].is_on
        pytensor_fuse.disable()
        pytensor_fuse.enable()
        assert isinstance(Virtual(), Op)
        """
    )


def test_instance_checks_ask_hooks() -> None:
    run_python(
        """
        import pytensor, pytensor_fuse
        from pytensor.graph.op import Op

        pytensor_fuse.enable()

        class Duck(Op):
            @classmethod
            def __subclasshook__(cls, other):
                return hasattr(other, "quack") or NotImplemented

        class Quacks:
            quack = True

        assert isinstance(Quacks(), Duck)
        """
    )


def test_what_was_registered_before_is_seen() -> None:
    run_python(
        """
        import pytensor
        from pytensor.graph.op import Op

        class Virtual:
            pass

        Op.register(Virtual)
        import pytensor_fuse
        pytensor_fuse.enable()
        assert isinstance(Virtual(), Op)
        """
    )


def test_virtual_bases_are_found() -> None:
    class Base(metaclass=ABCMeta):  # noqa: B024 - what it is a base of, it is told later
        pass

    class Derived(Base):
        pass

    assert not has_virtual_subclasses(Base)
    Derived.register(int)
    assert has_virtual_subclasses(Base)


# Graphs -----------------------------------------------------------------------------------


class Counts(Feature):
    """Listens by a method of the instance, which PyTensor's class does not have."""

    def __init__(self) -> None:
        self.seen: list[Any] = []


@both
def test_methods_put_on_a_feature_hear(on: bool) -> None:
    x = pt.vector("x")
    graph = FunctionGraph([x], [pt.exp(x)])
    feature: Any = Counts()
    graph.attach_feature(feature)
    feature.on_import = lambda fgraph, node, reason: feature.seen.append(("import", reason))
    graph.replace(graph.outputs[0], pt.sin(graph.inputs[0]), reason="mine")
    assert feature.seen == [("import", "mine")]
    with mock.patch.object(
        Feature, "on_prune", side_effect=lambda *_: feature.seen.append("prune")
    ):
        graph.replace(graph.outputs[0], pt.cos(graph.inputs[0]), reason="more")
    assert ("import", "more") in feature.seen
    assert "prune" in feature.seen


class Own(FunctionGraph):
    """A graph that notes its imports."""

    def import_node(self, apply_node: Any, *args: Any, **options: Any) -> None:
        vars(self).setdefault("noted", []).append(apply_node)
        super().import_node(apply_node, *args, **options)


@both
def test_graphs_of_other_classes_are_asked(on: bool) -> None:
    x = pt.vector("x")
    graph: Any = Own([x], [pt.exp(x)], clone=False)
    new = pt.sin(x)
    graph.replace(graph.outputs[0], new)
    assert graph.noted[-1] is new.owner
    graph.check_integrity()


@both
def test_histories_go_back_and_forth(on: bool) -> None:
    x, y = pt.vectors("x", "y")
    graph = FunctionGraph([x, y], [pt.exp(x) * pt.exp(y) + pt.exp(x)], clone=False)
    history = FullHistory()
    graph.attach_feature(history)
    before = [id(node) for node in graph.toposort()]
    checkpoint = graph.checkpoint()
    for node in list(graph.toposort())[:2]:
        graph.replace(node.outputs[0], pt.sin(node.inputs[0]) + 1, reason="step")
    after = [id(node) for node in graph.toposort()]
    history.start()
    assert [id(node) for node in graph.toposort()] == before
    history.end()
    assert [id(node) for node in graph.toposort()] == after
    graph.check_integrity()
    assert isinstance(graph._features[0], History)
    assert checkpoint >= 1


@both
def test_a_missing_input_is_an_error(on: bool) -> None:
    x, y = pt.vectors("x", "y")
    graph = FunctionGraph([x], [pt.exp(x)], clone=False)
    with pytest.raises(MissingInputError, match=r"Input 1 \(y\) of the graph"):
        graph.replace(graph.outputs[0], x + y)
    graph.import_var(x * y, import_missing=True)
    assert graph.inputs == [x, y]


@both
def test_refused_replacements_leave_the_graph(on: bool) -> None:
    x = pt.vector("x")
    graph = FunctionGraph([x], [pt.exp(x) + 1], clone=False)

    class Refuses(Feature):
        def on_validate(self, fgraph: Any) -> None:
            if any(node.op == pt.sin for node in fgraph.apply_nodes):
                raise pytensor.graph.utils.InconsistencyError("no sines")

    graph.attach_feature(Refuses())
    before = list(map(str, graph.toposort()))
    with pytest.raises(pytensor.graph.utils.InconsistencyError, match="no sines"):
        graph.replace_all_validate([(graph.outputs[0], pt.sin(x))], reason="sine")
    assert list(map(str, graph.toposort())) == before
    graph.check_integrity()


@both
def test_cycles_and_protected_inputs_are_refused(on: bool) -> None:
    def overwrites(x: Any) -> Any:
        return [x], [Elemwise(add, {0: 0})(x, x + 1), pt.exp(x)], {}

    found = compile_and_record(lambda: overwrites(pt.vector("x")), on)
    kind, text = found["error"]
    assert kind is TypeError or "destroy" in text
    x = pt.vector("x")
    a = pt.exp(x)
    graph = FunctionGraph([x], [pt.sin(a)], clone=False)
    from pytensor.graph import destroyhandler

    assert not destroyhandler._contains_cycle(graph, {})
    first, last = graph.toposort()
    assert destroyhandler._contains_cycle(graph, {first: [last]})
    assert not destroyhandler._contains_cycle(graph, {last: [first]})
    stranger = pt.cos(x).owner
    assert destroyhandler._contains_cycle(graph, {last: [stranger]})


# Rewriters --------------------------------------------------------------------------------


@both
def test_own_rewriters_are_asked(on: bool) -> None:
    asked: list[str] = []

    class Mine(FromFunctionNodeRewriter):
        def transform(self, fgraph: Any, node: Any, *args: Any, **options: Any) -> Any:
            asked.append("transform")
            return super().transform(fgraph, node, *args, **options)

    def to_sin(fgraph: Any, node: Any) -> Any:
        asked.append("function")
        return [pt.sin(node.inputs[0])]

    class Walks(WalkingGraphRewriter):
        def process_node(self, fgraph: Any, node: Any, *args: Any, **options: Any) -> Any:
            asked.append("process")
            return super().process_node(fgraph, node, *args, **options)

    x = pt.vector("x")
    for rewriter in (
        WalkingGraphRewriter(Mine(to_sin, [pt.exp])),
        Walks(FromFunctionNodeRewriter(to_sin, [pt.exp])),
        EquilibriumGraphRewriter([Mine(to_sin, [pt.exp])], max_use_ratio=10),
    ):
        asked.clear()
        graph = FunctionGraph([x], [pt.exp(x) + 1])
        rewriter.rewrite(graph)
        assert "function" in asked
        assert {"transform", "process"} & set(asked)
        assert any(node.op == pt.sin for node in graph.apply_nodes)


@both
def test_failing_rewriters(on: bool) -> None:
    @node_rewriter([pt.exp])
    def fails(fgraph: Any, node: Any) -> Any:
        raise ArithmeticError("as it must")

    @node_rewriter([pt.exp])
    def gives_too_many(fgraph: Any, node: Any) -> Any:
        return [node.inputs[0], node.inputs[0]]

    @node_rewriter([pt.exp])
    def gives_none_of_these(fgraph: Any, node: Any) -> Any:
        return 3

    x = pt.vector("x")
    for rewriter, error, text in (
        (fails, ArithmeticError, "as it must"),
        (gives_too_many, ValueError, "gave wrong number of replacements"),
        (gives_none_of_these, TypeError, "gave wrong type of replacement"),
    ):
        for make in (
            lambda rw: WalkingGraphRewriter(rw),
            lambda rw: EquilibriumGraphRewriter([rw], max_use_ratio=10),
        ):
            graph = FunctionGraph([x], [pt.exp(x)])
            with pytest.raises(error, match=text):
                make(rewriter).rewrite(graph)
    told: list[Any] = []
    quiet = EquilibriumGraphRewriter(
        [fails], max_use_ratio=10, failure_callback=lambda *args: told.append(args[-1].op)
    )
    quiet.rewrite(FunctionGraph([x], [pt.exp(x)]))
    assert told == [pt.exp]


@both
def test_too_many_uses_end_an_equilibrium(on: bool) -> None:
    @node_rewriter([pt.exp])
    def again(fgraph: Any, node: Any) -> Any:
        return [pt.exp(node.inputs[0])]

    x = pt.vector("x")
    rewriter = EquilibriumGraphRewriter([again], max_use_ratio=3)
    with (
        pytensor.config.change_flags(on_opt_error="raise"),
        pytest.raises(AssertionError, match=r"max'ed out by again\."),
    ):
        rewriter.rewrite(FunctionGraph([x], [pt.exp(x)]))


def test_profiles_have_the_same_entries() -> None:
    @node_rewriter([pt.exp])
    def to_sin(fgraph: Any, node: Any) -> Any:
        return [pt.sin(node.inputs[0])]

    @node_rewriter([pt.exp, pt.sin])
    def nothing(fgraph: Any, node: Any) -> Any:
        return None

    x = pt.vector("x")
    rewriter = EquilibriumGraphRewriter([nothing, to_sin], max_use_ratio=10)
    profiles = []
    for on in (False, True):
        with switched(accelerators=on):
            graph = FunctionGraph([x], [pt.exp(x) + 1])
            _, _, counts, sizes, _, n_nodes, times, _, made, *subs = rewriter.apply(graph)
            profiles.append((counts, sizes, n_nodes, list(times), made, subs))
            assert all(seconds >= 0 for seconds in times.values())
    assert profiles[0] == profiles[1]
    assert profiles[0][0][0] == {to_sin: 1}


# The rest ---------------------------------------------------------------------------------


@both
def test_tags_are_copied(on: bool) -> None:
    tag = Scratchpad()
    tag.trace = [1]
    tag.name = "n"
    made = copy.copy(tag)
    assert type(made) is Scratchpad
    assert vars(made) == vars(tag)
    assert made.trace is tag.trace
    made.name = "other"
    assert tag.name == "n"
    assert vars(pickle.loads(pickle.dumps(tag))) == vars(tag)
    assert vars(copy.deepcopy(tag)) == vars(tag)

    class Slotted(Scratchpad):
        def __getstate__(self) -> Any:
            return {"state": 3}

    assert vars(copy.copy(Slotted())) == {"state": 3}
    out = pt.exp(pt.vector("x"))
    assert type(copy.copy(out.tag)) is type(out.tag)
    with pytest.raises(AttributeError):
        _ = tag.nothing


@both
def test_names_of_rewriters(on: bool) -> None:
    rewriter = FromFunctionNodeRewriter(print)
    assert str(rewriter) == repr(rewriter)
    rewriter.__name__ = "named"
    assert str(rewriter) == "named"


@both
def test_order_is_that_of_a_walk_from_the_right(on: bool) -> None:
    x, y = pt.vectors("x", "y")
    a, b = pt.exp(x), pt.sin(y)
    out = a * b
    assert [node.op for node in toposort([out])] == [pt.sin, pt.exp, pt.mul]
    assert list(toposort([out], blockers=[a, b])) == [out.owner]
    lazily = toposort([out])
    assert isinstance(next(lazily), Apply)
    assert isinstance(pt.exp, Op)


def test_threads() -> None:
    """Compiles in threads, while the switches go on and off, give what they always give."""
    errors: list[Any] = []
    stop = threading.Event()

    def compiles() -> None:
        try:
            for n in range(4):
                x = pt.vector("x")
                out = pt.grad((pt.exp(x * n) / (1 + pt.exp(x))).sum(), x)
                f = pytensor.function([x], out, mode=Mode(linker="py", optimizer="fast_run"))
                e = np.exp(0.5)
                expected = (n * np.exp(n * 0.5) * (1 + e) - np.exp(n * 0.5) * e) / (1 + e) ** 2
                np.testing.assert_allclose(f(np.array([0.5])), [expected], rtol=1e-10)
        except Exception as error:
            errors.append(error)

    def toggles() -> None:
        on = False
        while not stop.wait(0.002):
            with switched(accelerators=on):
                on = not on

    threads = [threading.Thread(target=compiles) for _ in range(3)]
    toggler = threading.Thread(target=toggles)
    for thread in (*threads, toggler):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    toggler.join()
    assert errors == []


# Rewriters that get more to track ---------------------------------------------------------


def test_a_group_that_gets_another_rewriter_tries_it() -> None:
    @node_rewriter([pt.sin])
    def never(fgraph: Any, node: Any) -> Any:
        return None

    @node_rewriter([pt.exp])
    def to_cos(fgraph: Any, node: Any) -> Any:
        return [pt.cos(node.inputs[0])]

    group = SequentialNodeRewriter(never)
    rewriter = WalkingGraphRewriter(group)
    x = pt.vector("x")
    graph = FunctionGraph([x], [pt.exp(x)])
    for _ in range(2):
        rewriter.rewrite(graph)
        assert graph.outputs[0].owner.op == pt.exp
    group.tracker.add_tracker(to_cos)
    # In PyTensor 3.0 a tracker does not look again at ops that it has been asked of.
    other = FunctionGraph([x], [Elemwise(pt.exp.scalar_op, name="other")(x)])
    rewriter.rewrite(other)
    with switched(accelerators=False):
        again = FunctionGraph([x], [Elemwise(pt.exp.scalar_op, name="other")(x)])
        rewriter.rewrite(again)
    assert other.outputs[0].owner.op == again.outputs[0].owner.op


def test_rewriters_are_let_go() -> None:
    @node_rewriter([pt.exp])
    def nothing(fgraph: Any, node: Any) -> Any:
        return None

    x = pt.vector("x")
    rewriter = WalkingGraphRewriter(nothing)
    rewriter.rewrite(FunctionGraph([x], [pt.sin(x)]))
    reference = weakref.ref(nothing)
    del nothing, rewriter
    gc.collect()
    assert reference() is None


@both
def test_a_rewriter_that_comes_in_the_middle_is_tried(on: bool) -> None:
    @node_rewriter([pt.cos])
    def to_tan(fgraph: Any, node: Any) -> Any:
        return [pt.tan(node.inputs[0])]

    @node_rewriter([pt.exp])
    def to_cos(fgraph: Any, node: Any) -> Any:
        if to_tan not in rewriter.node_tracker.get_rewriters():
            rewriter.node_tracker.add_tracker(to_tan)
        return [pt.cos(node.inputs[0])]

    x = pt.vector("x")
    rewriter = EquilibriumGraphRewriter([to_cos], max_use_ratio=10)
    graph = FunctionGraph([x], [pt.exp(x) + 1])
    profile = rewriter.rewrite(graph)
    assert any(node.op == pt.tan for node in graph.apply_nodes)
    assert {to_cos, to_tan} <= set(profile[6])


# Who listens ------------------------------------------------------------------------------


class Logs(Feature):
    """Writes down what it hears."""

    def __init__(self, log: list[Any], name: str) -> None:
        self.log = log
        self.name = name

    def on_change_input(self, fgraph: Any, *args: Any, **options: Any) -> None:
        self.log.append((self.name, "change"))


@both
def test_listeners_come_and_go(on: bool) -> None:
    """Also while they are told, and with methods that they got later."""
    x = pt.vector("x")
    log: list[Any] = []

    class Brings(Logs):
        def on_import(self, fgraph: Any, node: Any, reason: Any) -> None:
            self.log.append((self.name, "import"))
            if self.name == "first":
                self.name = "once"
                fgraph.attach_feature(Brings(self.log, "second"))

    graph = FunctionGraph([x], [pt.exp(x) + 1], clone=False)
    plain = Logs(log, "plain")
    first = Brings(log, "first")
    for feature in (plain, first):
        graph.attach_feature(feature)
    steps = [pt.sin(x), pt.cos(x), pt.tan(x), pt.sinh(x), pt.cosh(x)]

    def step() -> None:
        graph.replace(graph.outputs[0].owner.inputs[0], steps.pop(0), reason="step")

    step()
    assert log == [
        ("first", "import"), ("second", "import"), ("plain", "change"), ("once", "change"),
        ("second", "change"),
    ]  # fmt: skip
    log.clear()
    plain.on_import = lambda *args: log.append("own")  # type: ignore[method-assign]
    step()
    assert log[0] == "own"
    log.clear()
    graph.remove_feature(first)
    step()
    assert log == ["own", ("second", "import"), ("plain", "change"), ("second", "change")]
    log.clear()
    with mock.patch.object(Logs, "on_prune", return_value=None) as on_prune:
        step()
    assert on_prune.call_count == 2
    reference = weakref.ref(plain)
    graph.remove_feature(plain)
    graph.execute_callbacks_times.clear()
    del plain, feature, first
    gc.collect()
    assert reference() is None
    for again in (pickle.loads(pickle.dumps(FunctionGraph([x], [pt.exp(x)]))), graph.clone()):
        again.replace(again.outputs[0], pt.sin(again.inputs[0]))
        assert again.outputs[0].owner.op == pt.sin
