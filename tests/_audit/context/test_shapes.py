"""What an audit says about shapes: against the arrays that PyTensor computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.raise_op import assert_op
from pytensor.tensor.type import TensorType

from pytensor_fuse._audit.context.build import graph_context
from pytensor_fuse._audit.context.graph import GraphContext
from support.graphs import computed
from support.random_graphs.building import Program, build, shapes_of
from support.random_graphs.strategies import any_programs


def assert_true(context: GraphContext, arrays: dict[Variable, Any]) -> int:
    """What is known is right; return how many tensors are not wholly known."""
    unknown = 0
    for variable, array in arrays.items():
        if not isinstance(variable.type, TensorType):
            continue
        shape = context.shape(variable)
        assert shape is not None
        assert len(shape) == array.ndim
        assert all(n in (None, m) for n, m in zip(shape, array.shape, strict=True)), variable
        if context.nbytes(variable) is None:
            unknown += 1
        else:
            assert context.nbytes(variable) == array.nbytes
        value = context.known.value(variable)
        if value is not None:
            np.testing.assert_array_equal(value, array)
            assert value.dtype == array.dtype
    return unknown


@given(any_programs())
def test_shapes_are_those_of_the_arrays(program: Program) -> None:
    case = build(program)
    arrays = computed(case.fgraph, case.values)
    assert_true(graph_context(case.fgraph, None), arrays)
    assert assert_true(graph_context(case.fgraph, shapes_of(case)), arrays) == 0


def test_shapes_that_follow_from_values() -> None:
    x, n = pt.matrix("x"), pt.lscalar("n")
    rows = x.shape[0]
    outputs = [
        x[1 : rows - 1],
        pt.zeros((2 * rows, x.shape[1] + 1)),
        x.reshape((-1, 2)),
        pt.concatenate([x, x.T.reshape((rows, -1))], axis=1),
        pt.arange(rows // 2),
        x[:, None].repeat(3, axis=1) if hasattr(x, "repeat") else x,
        pt.tile(x, (2, 3)),
        x.flatten()[: pt.minimum(rows, 3)],
    ]
    unknown = [x[:n], pt.zeros(n), pt.nonzero(x)[0]]
    fgraph = FunctionGraph([x, n], [*outputs, *unknown], clone=False)
    context = graph_context(fgraph, {"x": (4, 6)})
    arrays = computed(fgraph, [np.ones((4, 6)), np.asarray(2)])
    assert_true(context, arrays)
    assert [context.shape(v) for v in outputs] == [arrays[v].shape for v in outputs]
    assert [context.nbytes(v) for v in unknown] == [None] * 3
    assert context.shape(unknown[0]) == (None, 6)


def test_shapes_of_what_inner_graphs_compute() -> None:
    n, x = pt.lscalar("n"), pt.vector("x")
    rows, columns, half = pt.lscalar(), pt.lscalar(), pt.vector()
    frame = OpFromGraph(
        [rows, columns, half], [pt.zeros((rows, columns)), pt.concatenate([half, half])]
    )
    outputs = frame(x.shape[0], x.shape[0] // 2, x[:3])
    context = graph_context(FunctionGraph([x], outputs, clone=False), {"x": (9,)})
    assert [context.shape(v) for v in outputs] == [(9, 4), (6,)]
    outputs = frame(x.shape[0], n, x)
    context = graph_context(FunctionGraph([x, n], outputs, clone=False), {"x": (9,)})
    assert [context.shape(v) for v in outputs] == [(9, None), (18,)]


def test_lengths_that_are_checked() -> None:
    x, y = pt.vectors("xy")
    length = assert_op(x.shape[0], pt.eq(x.shape[0], y.shape[0]))
    low, high = divmod(x.shape[0], 2)
    outputs = [pt.zeros(length), pt.zeros(low + high), pt.zeros(pt.switch(low > 2, low, high))]
    fgraph = FunctionGraph([x, y], outputs, clone=False)
    context = graph_context(fgraph, {"x": (7,)})
    assert [context.shape(v) for v in outputs] == [(7,), (4,), (3,)]


def test_what_is_not_given_is_not_known() -> None:
    x, y = pt.matrices("xy")
    out = pt.exp(x).dot(y)
    fgraph = FunctionGraph([x, y], [out], clone=False)
    context = graph_context(fgraph, {x: (3, None)})
    assert context.shape(x) == (3, None)
    assert context.shape(out) == (3, None)
    assert context.nbytes(out) is None
    context = graph_context(fgraph, {x: (3, None), y: (None, 5)})
    assert context.shape(out) == (3, 5)
    assert context.nbytes(out) == 120


def test_shared_variables_have_the_shape_that_they_have_now() -> None:
    data, state = pytensor.shared(np.ones((3, 2))), pytensor.shared(np.ones(5))
    x = pt.vector("x")
    out, update = data.dot(x), state[1:]
    function = pytensor.function([x], out, updates={state: update}, mode="FAST_COMPILE")
    context = graph_context(function, None)
    fgraph = function.maker.fgraph
    assert context.shape(fgraph.outputs[0]) == (3,)
    assert context.shape(fgraph.outputs[1]) == (None,), "it changes from call to call"
    assert graph_context(function, {x: (2,)}).shape(fgraph.inputs[0]) == (2,)
    assert graph_context(function, {data: (7, 2)}).shape(fgraph.outputs[0]) == (7,)


def test_scans_hand_their_shapes_in() -> None:
    x, h = pt.matrix("x"), pt.vector("h")
    w = pt.matrix("w")
    states = pytensor.scan(
        lambda row, state, w: pt.tanh(state.dot(w) + row),
        sequences=[x],
        outputs_info=[h],
        non_sequences=[w],
        return_updates=False,
    )
    function = pytensor.function([x, h, w], states, mode="FAST_RUN")
    context = graph_context(function, {x: (10, 4), h: (4,), w: (4, 4)})
    [(_, inner)] = context.inner
    assert inner.times == 10
    assert inner.path
    for node in inner.order:
        for variable in node.outputs:
            assert inner.shape(variable) in ((4,), (1, 4), (4, 4))
    assert graph_context(function, None).inner[0][1].times is None


def test_an_op_that_fails_to_say() -> None:
    class Liar(Op):
        def make_node(self, x: Variable) -> Apply:
            return Apply(self, [x], [pt.vector()])

        def infer_shape(self, *args: object) -> object:
            raise RuntimeError("no")

        def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
            raise NotImplementedError

    x = pt.vector("x")
    out = Liar()(x)
    context = graph_context(FunctionGraph([x], [pt.exp(out)], clone=False), {"x": (3,)})
    assert context.shape(out) == (None,)


def two_named() -> FunctionGraph:
    a, b = pt.vector("a"), pt.vector("a")
    return FunctionGraph([a, b], [a + b], clone=False)


@pytest.mark.parametrize(
    ("shapes", "error", "message"),
    [
        ({"z": (3,)}, ValueError, "'z'.*names are k, r, x"),
        ({pt.vector("other"): (3,)}, ValueError, "'other', which is not an input"),
        ({"x": (3, 3)}, ValueError, "'x' 2 dimensions, but it has 1"),
        ({"k": (3, 5)}, ValueError, "'k' the length 5 along axis 1, but its type says 2"),
        ({"x": (-1,)}, ValueError, "'x' the length -1"),
        ({"r": (1,)}, ValueError, "'r' a shape, but it is"),
        ({"x": (1.5,)}, TypeError, "shape of 'x' must be"),
        ({"x": 3}, TypeError, "shape of 'x' must be"),
        ({3: (3,)}, TypeError, "variables or names, not int"),
        ([("x", (3,))], TypeError, "not be a list"),
        ({"x": (3,), "y": (4,)}, ValueError, "axis 0 differ"),
    ],
)
def test_wrong_shapes(shapes: Any, error: type[Exception], message: str) -> None:
    x = pt.vector("x")
    y = pt.vector("y")
    y.name = "y"
    k = pt.tensor("k", shape=(None, 2))
    r = pytensor.tensor.random.type.random_generator_type("r")
    y.name = None if "names are" in message else "y"
    fgraph = FunctionGraph([x, y, k, r], [x + y, k.sum()], clone=False)
    with pytest.raises(error, match=message):
        graph_context(fgraph, shapes)


def test_one_input_named_twice() -> None:
    fgraph = two_named()
    with pytest.raises(ValueError, match="2 inputs have that name"):
        graph_context(fgraph, {"a": (3,)})
    x = pt.vector("x")
    with pytest.raises(ValueError, match="'x' twice"):
        graph_context(FunctionGraph([x], [x + 1], clone=False), {"x": (3,), x: (3,)})


# How it will run --------------------------------------------------------------------------


class Note(Op):
    """Its input, noting that it ran."""

    __props__ = ("number",)
    ran: list[int] = []  # noqa: RUF012  # Shared by all on purpose.

    def __init__(self, number: int) -> None:
        self.number = number

    def make_node(self, *xs: Variable) -> Apply:
        return Apply(self, list(xs), [xs[0].type()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        self.ran.append(self.number)
        output_storage[0][0] = sum(inputs)


@given(any_programs(max_steps=10))
@pytest.mark.parametrize("linker", ["cvm", "vm", "py"])
def test_the_order_is_that_of_the_run(linker: str, program: Program) -> None:
    """Each step of the program reads the vectors of some that come before it."""
    x = pt.vector("x")
    made: list[Variable] = [x]
    for number, (_, *choices) in enumerate(program.steps):
        made.append(Note(number)(*(made[-1 - c % len(made)] for c in choices)))
    outputs = [made[-1 - c % len(made)] for c in program.outputs] or made[-1:]
    function = pytensor.function(
        [x], outputs, mode=Mode(linker, optimizer=None), on_unused_input="ignore"
    )
    context = graph_context(function, None)
    assert context.order_is_exact
    Note.ran.clear()
    function(np.ones(2))
    assert [n.op.number for n in context.order if isinstance(n.op, Note)] == Note.ran
