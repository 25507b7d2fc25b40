"""What Elemwise nodes give is known for equal ops, and for no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType

from pytensor_fuse._pytensor.compat.checks import release
from pytensor_fuse._pytensor.ops import known_types
from support.switching import switched

OPS = [
    ps.mul, ps.add, ps.sub, ps.true_div, ps.int_div, ps.pow, ps.second, ps.eq, ps.and_,
    ps.exp, ps.neg, ps.sqr, ps.identity, ps.Cast(ps.float32), ps.Cast(ps.int8),
    ps.Mul(ps.upgrade_to_float), ps.Add(ps.upcast_out), ps.switch,
]  # fmt: skip
DTYPES = ["float64", "float32", "int64", "int8", "bool", "complex64"]
LENGTHS = st.lists(st.sampled_from([None, 1, 3, 4]), max_size=2)
INPUTS = st.lists(st.tuples(st.sampled_from(DTYPES), LENGTHS), min_size=1, max_size=3)


def made(op: Any, inputs: list[Any]) -> Any:
    try:
        node = op.make_node(*inputs)
    except Exception as error:
        return type(error), str(error)
    kinds = [None if v.owner is None else str(v.owner.op) for v in node.inputs]
    return node.op is op, [v.type for v in node.inputs], kinds, [v.type for v in node.outputs]


@given(
    which=st.integers(0, len(OPS) - 1),
    inputs=INPUTS,
    inplace=st.booleans(),
    settings=st.tuples(
        st.sampled_from(["float64", "float32"]), st.sampled_from(["custom", "numpy+floatX"])
    ),
)
def test_equal_ops_give_the_same(
    which: int, inputs: list[Any], inplace: bool, settings: tuple[str, str]
) -> None:
    variables = [TensorType(dtype, shape=tuple(lengths))() for dtype, lengths in inputs]
    pattern = {0: 0} if inplace else None

    def ops() -> list[Any]:
        return [Elemwise(OPS[which], pattern) for _ in range(3)]

    with pytensor.config.change_flags(floatX=settings[0], cast_policy=settings[1]):
        with switched(accelerators=False):
            expected = [made(op, variables) for op in ops()]
        with switched(accelerators=["elemwise_nodes"]):
            assert [made(op, variables) for op in ops()] == expected


def test_ops_that_are_changed_are_seen() -> None:
    x = pt.vector("x", dtype="int64")
    with switched(accelerators=["elemwise_nodes"]):
        op = Elemwise(ps.Add(ps.upcast_out))
        assert op(x, x).dtype == "int64"
        op.scalar_op = ps.Add(ps.upgrade_to_float)
        assert op(x, x).dtype == "float64"
        op.scalar_op.output_types = lambda types: [ps.int8]
        assert op(x, x).dtype == "int8"


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_types, "_MANY", 8)
    monkeypatch.setattr(known_types, "_known", known_types._Known())
    with switched(accelerators=["elemwise_nodes"]):
        for n in range(2, 40):
            x = pt.tensor("x", shape=(n,), dtype="float64")
            assert Elemwise(ps.add)(x, np.float64(1) * x).type.shape == (n,)
            known = known_types._known
            assert max(len(known.ops), len(known.types), len(known.equal)) <= 8


PATTERNS = st.lists(
    st.sampled_from(["x", 0, 1, 2, True, np.int64(1), "y", 1.0, None]), max_size=3
).flatmap(lambda p: st.sampled_from([tuple(p), [p], [tuple(p)]]))


def shuffled(v: Any, pattern: Any) -> Any:
    try:
        out = v.dimshuffle(*pattern)
    except Exception as error:
        return type(error), str(error)
    if out is v:
        return "the same"
    op = out.owner.op
    return out.type, repr(op.new_order), op, [out.owner.inputs[0] is v], vars(op).keys()


@given(n_dims=st.integers(0, 2), pattern=PATTERNS)
def test_dimensions_are_rearranged_as_ever(n_dims: int, pattern: Any) -> None:
    v = pt.tensor("v", shape=(None, 1)[:n_dims])
    with switched(accelerators=False):
        expected = shuffled(v, pattern)
    with switched(accelerators=["elemwise_nodes"]):
        assert [shuffled(v, pattern) for _ in range(2)] == [expected, expected]


def test_kernels_are_known_by_what_they_take_and_give() -> None:
    x, i = pt.vector("x"), pt.lvector("i")
    a, b = ps.float64("a"), ps.float64("b")
    kernels = [
        lambda: ps.Composite([a, b], [a * b]),
        lambda: ps.Composite([a, b], [a + b, ps.exp(a)]),
        lambda: ps.Composite([a, b], [ps.lt(a, b)]),
    ]
    for make in kernels:
        # PyTensor 3.0 may fail on integers, or not, from one time to the next.
        others = [[x, i], [i, i], [x, 2]] if release() >= (3, 3) else []
        for inputs in ([x, x], [x, pt.scalar("s")], *others):
            ops = [Elemwise(make()) for _ in range(3)]
            with switched(accelerators=False):
                expected = made(ops[0], inputs)
            with switched(accelerators=["elemwise_nodes"]):
                for op in ops:
                    assert made(op, inputs)[1:] == expected[1:]


def test_numbers_become_constants_as_ever() -> None:
    x = pt.fvector("x")
    for number in (2, 2.5, True, np.float32(1.5), np.arange(3), [1.0, 2.0], 3e100, "text"):
        with switched(accelerators=False):
            expected = made(Elemwise(ps.add), [x, number])
        with switched(accelerators=["elemwise_nodes", "tensor_types"]):
            for _ in range(2):
                assert made(Elemwise(ps.add), [x, number])[1:] == expected[1:]
