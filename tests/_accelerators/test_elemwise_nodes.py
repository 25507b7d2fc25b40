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

import pytensor_fuse
from pytensor_fuse._pytensor import known_types

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
        with pytensor_fuse.enabled(accelerators=False):
            expected = [made(op, variables) for op in ops()]
        with pytensor_fuse.enabled(accelerators=["elemwise_nodes"]):
            assert [made(op, variables) for op in ops()] == expected


def test_ops_that_are_changed_are_seen() -> None:
    x = pt.vector("x", dtype="int64")
    with pytensor_fuse.enabled(accelerators=["elemwise_nodes"]):
        op = Elemwise(ps.Add(ps.upcast_out))
        assert op(x, x).dtype == "int64"
        op.scalar_op = ps.Add(ps.upgrade_to_float)
        assert op(x, x).dtype == "float64"
        op.scalar_op.output_types = lambda types: [ps.int8]
        assert op(x, x).dtype == "int8"


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_types, "_MANY", 8)
    monkeypatch.setattr(known_types, "_known", known_types._Known())
    with pytensor_fuse.enabled(accelerators=["elemwise_nodes"]):
        for n in range(2, 40):
            x = pt.tensor("x", shape=(n,), dtype="float64")
            assert Elemwise(ps.add)(x, np.float64(1) * x).type.shape == (n,)
            known = known_types._known
            assert max(len(known.ops), len(known.types), len(known.equal)) <= 8
