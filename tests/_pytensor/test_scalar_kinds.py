"""What Elemwise nodes compute per element, and that the answers are found by address."""

from __future__ import annotations

from typing import Any

import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import UnaryScalarOp, upgrade_to_float
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._fusion.extract import extract
from pytensor_fuse._pytensor.ops import scalar_kinds as module
from pytensor_fuse._pytensor.ops.scalar_kinds import scalar_kinds, signature_kinds


class Counted(UnaryScalarOp):
    """A scalar op that counts how often it is hashed. All that have one name are equal."""

    nfunc_spec = None

    def __init__(self, name: str) -> None:
        super().__init__(upgrade_to_float, name=name)
        self.n_hashed = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counted) and other.name == self.name

    def __hash__(self) -> int:
        self.n_hashed += 1
        return hash(self.name)

    def impl(self, x: Any) -> Any:
        return x

    def c_code(self, node: Any, name: str, inputs: Any, outputs: Any, sub: Any) -> str:
        return f"{outputs[0]} = {inputs[0]};"


class Unhashable(Counted):
    __hash__ = None  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def _empty_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_kinds", {})
    monkeypatch.setattr(module, "_by_address", {})


def arrays_of(*outputs: Any) -> Any:
    return extract(FunctionGraph(outputs=list(outputs), clone=False)).arrays


def applied(scalar_op: ps.ScalarOp) -> Any:
    return Elemwise(scalar_op)(pt.vector("x"))


DTYPES = st.sampled_from(["float32", "float64", "int8", "int64", "bool"])
OPS = st.sampled_from([pt.add, pt.mul, pt.maximum, pt.eq, pt.true_div, pt.pow])


@st.composite
def graphs(draw: st.DrawFn) -> list[Any]:
    """Some results, each of a few variables of which some are read twice."""
    variables: list[Any] = [pt.vector(dtype=draw(DTYPES)) for _ in range(draw(st.integers(1, 3)))]
    for _ in range(draw(st.integers(1, 8))):
        operands = draw(st.lists(st.sampled_from(variables), min_size=2, max_size=2))
        variables.append(draw(OPS)(*operands))
    return variables[-3:]


@given(graphs())
def test_kinds_of_signatures_are_those_of_their_examples(outputs: list[Any]) -> None:
    arrays = arrays_of(*outputs)
    expected = scalar_kinds(arrays.examples())
    # When they are asked for first, and when they are known by address.
    for _ in range(2):
        found = signature_kinds(arrays)
        assert all(a is b for a, b in zip(found, expected, strict=True))


def test_a_key_tells_repeated_inputs_and_dtypes_apart() -> None:
    x, y, z = pt.vector("x"), pt.vector("y"), pt.vector("z", dtype="float32")
    arrays = arrays_of(x * x, x * y, y * x, x * z, z * x, z * z)
    keys = arrays.signature_keys()
    assert len(keys) == len(set(keys)) == 5
    assert arrays_of(y * y).signature_keys()[0] in keys


def test_a_known_op_is_not_hashed_again() -> None:
    op = Counted("counted")
    [kind] = signature_kinds(arrays_of(applied(op)))
    assert kind is not None
    assert op.n_hashed > 0
    op.n_hashed = 0
    assert signature_kinds(arrays_of(applied(op))) == [kind]
    assert op.n_hashed == 0


def test_equal_ops_share_an_answer_and_one_of_them_is_kept() -> None:
    [first] = signature_kinds(arrays_of(applied(Counted("equal"))))
    for _ in range(3):
        assert signature_kinds(arrays_of(applied(Counted("equal")))) == [first]
    assert len(module._kinds) == len(module._by_address) == 1


def test_what_cannot_be_hashed_is_in_no_kernel_and_not_kept() -> None:
    out = applied(Unhashable("unhashable"))
    arrays = extract(FunctionGraph(outputs=[out + 1], clone=False)).arrays
    for _ in range(2):
        assert [kind is None for kind in signature_kinds(arrays)].count(True) == 1
    assert len(module._by_address) == len(module._kinds) == 1


def test_tables_are_emptied_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_KINDS", 2)
    for name in ("a", "b"):
        signature_kinds(arrays_of(applied(Counted(name))))
    assert len(module._kinds) == len(module._by_address) == 2
    signature_kinds(arrays_of(applied(Counted("c"))))
    assert len(module._kinds) == len(module._by_address) == 1
