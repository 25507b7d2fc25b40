"""Graphs that differ in a single thing, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.io import In, Out
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.type import TensorType

from support.cached import compiled
from support.switching import switched

Made = tuple[Any, list[Any]]


def array(*values: float, dtype: str = "float64") -> np.ndarray:
    return np.array(values, dtype=dtype)


def with_constant(data: Any) -> Callable[[], Made]:
    def make() -> Made:
        x = pt.vector("x")
        constant = pt.constant(data)
        return compiled([x], [x / constant, pt.cumsum(x) + constant]), [array(1, 2, 3)]

    return make


def with_type(*types: Any) -> Callable[[], Made]:
    def make() -> Made:
        inputs = [TensorType(dtype, shape)(f"x{i}") for i, (dtype, shape) in enumerate(types)]
        total = sum(inputs[1:], inputs[0]) * 2
        values = [np.ones([3 if n is None else n for n in s], dtype=d) for d, s in types]
        return compiled(inputs, [pt.exp(total), total.sum()]), values

    return make


def with_roles(**roles: Any) -> Callable[[], Made]:
    def make() -> Made:
        x, y = pt.vectors("x", "y")
        inputs = [In(x, **roles.get("x", {})), In(y, **roles.get("y", {}))]
        outputs = [Out(pt.cumsum(x), borrow=roles.get("borrow", False)), x, y[::-1]]
        if roles.get("swapped"):
            inputs.reverse()
        if roles.get("turned"):
            outputs.reverse()
        options = {"accept_inplace": True} if roles.get("inplace") else {}
        return compiled(inputs, outputs, **options), [array(1, 2, 3), array(4, 5, 6)]

    return make


def with_op(op: Callable[[Any], Any]) -> Callable[[], Made]:
    def make() -> Made:
        x = pt.matrix("x")
        return compiled([x], [op(x)]), [np.arange(6.0).reshape(2, 3) / 7]

    return make


def with_shared(kind: str) -> Callable[[], Made]:
    def make() -> Made:
        x = pt.vector("x")
        held = array(1, 2, 3)
        if kind == "input":
            y = pt.vector("y")
            return compiled([x, y], [x * y + 1]), [array(1, 2, 3), held]
        if kind == "constant":
            return compiled([x], [x * pt.constant(held) + 1]), [array(1, 2, 3)]
        y = pytensor.shared(held, name="y")
        updates = {"shared": {}, "updated": {y: y + x}, "doubled": {y: y * 2}}[kind]
        return compiled([x], [x * y + 1], updates=updates), [array(1, 2, 3)]

    return make


def with_setting(**settings: Any) -> Callable[[], Made]:
    def make() -> Made:
        with pytensor.config.change_flags(**settings):
            x = pt.vector("x", dtype="float64")
            return compiled([x], [x.sum() / 3, pt.exp(x).mean()]), [array(1, 2, 3)]

    return make


def with_mode(mode: Any) -> Callable[[], Made]:
    def make() -> Made:
        x = pt.vector("x")
        outputs = [pt.log(1 + pt.exp(x)), pt.exp(x) / (1 + pt.exp(x)), pt.cumsum(x)[::-1]]
        return compiled([x], outputs, mode=mode), [array(1, 2, 3)]

    return make


def with_features(**features: bool) -> Callable[[], Made]:
    def make() -> Made:
        with switched(**features):
            x, y = pt.vectors("x", "y")
            joined = pt.concatenate([pt.sin(x) * 2 + 1, pt.exp(y) - 1])
            return compiled([x, y], [joined, x / -0.0]), [array(1, 2, 3), array(1, 2)]

    return make


def with_inner(change: Callable[[Any], Any]) -> Callable[[], Made]:
    def make() -> Made:
        x, inner = pt.vector("x"), pt.vector("inner")
        op = OpFromGraph([inner], [change(inner)])
        return compiled([x], [op(x) + 1]), [array(1, 2, 3)]

    return make


def with_step(change: Callable[[Any], Any], **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        x = pt.vector("x")
        steps = pytensor.scan(
            lambda one, total: total + change(one),
            sequences=[x],
            outputs_info=[pt.constant(np.array(0.0))],
            return_updates=False,
            **options,
        )
        return compiled([x], [steps]), [array(1, 2, 3)]

    return make


def with_states(bit_generator: Any, size: int, *, updated: bool) -> Callable[[], Made]:
    def make() -> Made:
        rng = pytensor.shared(np.random.Generator(bit_generator(1)), name="rng")
        new, draws = pt.random.normal(0, 1, size=(size,), rng=rng, return_next_rng=True)
        f = compiled([], [draws, draws + 1], updates={rng: new} if updated else {})
        return f, []

    return make


class Scaled(Op):
    """An op with a property."""

    __props__ = ("factor",)

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = inputs[0] * self.factor


def in_fortran_order() -> np.ndarray:
    return np.asfortranarray(np.arange(6.0).reshape(2, 3))


def with_matrix(data: np.ndarray) -> Callable[[], Made]:
    def make() -> Made:
        x = pt.vector("x")
        return compiled([x], [pt.constant(data) @ x]), [array(1, 2, 3)]

    return make


def nan(payload: int) -> np.ndarray:
    return np.array([0x7FF8000000000000 + payload], dtype="uint64").view("float64")


FAST = Mode("py", "fast_run")

TWINS: dict[str, tuple[Callable[[], Made], Callable[[], Made]]] = {
    "one bit of a constant": (
        with_constant(array(1, 2, 3)),
        with_constant(array(1, 2, np.nextafter(3, 4))),
    ),
    "the sign of zero": (with_constant(array(0.0, 1, 1)), with_constant(array(-0.0, 1, 1))),
    "the sign of a scalar zero": (with_constant(0.0), with_constant(-0.0)),
    "the payload of a NaN": (with_constant(nan(1)), with_constant(nan(2))),
    "the dtype of a constant": (
        with_constant(array(1, 2, 3)),
        with_constant(array(1, 2, 3, dtype="float32")),
    ),
    "the shape of a constant": (with_constant(array(1)), with_constant(1.0)),
    "how a constant lies in memory": (
        with_matrix(np.arange(6.0).reshape(2, 3)),
        with_matrix(in_fortran_order()),
    ),
    "the dtype of an input": (with_type(("float64", (None,))), with_type(("float32", (None,)))),
    "a static shape": (with_type(("float64", (None,))), with_type(("float64", (3,)))),
    "a broadcast pattern": (
        with_type(("float64", (None, None)), ("float64", (None, None))),
        with_type(("float64", (None, None)), ("float64", (1, None))),
    ),
    "the number of inputs": (
        with_type(("float64", (None,))),
        with_type(("float64", (None,)), ("float64", (None,))),
    ),
    "a mutable input": (with_roles(), with_roles(x={"mutable": True})),
    "another mutable input": (
        with_roles(x={"mutable": True}),
        with_roles(y={"mutable": True}),
    ),
    "a borrowed input": (with_roles(), with_roles(x={"borrow": True})),
    "a borrowed output": (with_roles(), with_roles(borrow=True)),
    "both borrowed": (
        with_roles(x={"borrow": True}),
        with_roles(x={"borrow": True}, borrow=True),
    ),
    "the order of inputs": (with_roles(), with_roles(swapped=True)),
    "the order of outputs": (with_roles(), with_roles(turned=True)),
    "an axis": (with_op(lambda x: x.sum(axis=0)), with_op(lambda x: x.sum(axis=1))),
    "an axis of cumsum": (
        with_op(lambda x: pt.cumsum(x, axis=0)),
        with_op(lambda x: pt.cumsum(x, axis=1)),
    ),
    "the op": (with_op(pt.sin), with_op(pt.cos)),
    "a property": (with_op(Scaled(2.0)), with_op(Scaled(3.0))),
    "the sign of a property": (with_op(Scaled(0.0)), with_op(Scaled(-0.0))),
    "a cast": (
        with_op(lambda x: x.astype("float32") * 2),
        with_op(lambda x: x.astype("int64") * 2),
    ),
    "an index": (with_op(lambda x: x[0]), with_op(lambda x: x[1])),
    "a slice": (with_op(lambda x: x[:, 1:]), with_op(lambda x: x[:, :-1])),
    "a shared variable for an input": (with_shared("input"), with_shared("shared")),
    "a shared variable for a constant": (with_shared("constant"), with_shared("shared")),
    "an update": (with_shared("shared"), with_shared("updated")),
    "another update": (with_shared("updated"), with_shared("doubled")),
    "floatX": (with_setting(floatX="float64"), with_setting(floatX="float32")),
    "cast_policy": (
        with_setting(cast_policy="custom"),
        with_setting(cast_policy="numpy+floatX"),
    ),
    "a tag of the mode": (with_mode(FAST), with_mode(FAST.excluding("fusion"))),
    "a rewriter left out": (with_mode(FAST), with_mode(FAST.excluding("local_log1p"))),
    "a rewriter asked for": (with_mode(FAST), with_mode(FAST.including("merge_fusion"))),
    "the optimizer": (with_mode(FAST), with_mode(Mode("py", "fast_compile"))),
    "no optimizer": (with_mode(FAST), with_mode(Mode("py", None))),
    "the linker": (with_mode(FAST), with_mode(Mode("vm", "fast_run"))),
    "fusion off": (with_features(), with_features(fusion=False)),
    "joins off": (with_features(), with_features(joins=False)),
    "exact constants off": (with_features(), with_features(exact_constants=False)),
    "a constant of an inner graph": (
        with_inner(lambda one: one * 2),
        with_inner(lambda one: one * 3),
    ),
    "an op of an inner graph": (with_inner(pt.exp), with_inner(pt.log)),
    "a constant of a step": (with_step(lambda one: one * 2), with_step(lambda one: one * 3)),
    "a way to scan": (with_step(pt.exp), with_step(pt.exp, go_backwards=True)),
    "the kind of random state": (
        with_states(np.random.PCG64, 3, updated=False),
        with_states(np.random.SFC64, 3, updated=False),
    ),
    "how many draws": (
        with_states(np.random.PCG64, 3, updated=False),
        with_states(np.random.PCG64, 4, updated=False),
    ),
    "a state that goes on": (
        with_states(np.random.PCG64, 3, updated=False),
        with_states(np.random.PCG64, 3, updated=True),
    ),
}
