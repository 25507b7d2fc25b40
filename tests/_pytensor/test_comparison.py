"""How PyTensor's classes compare themselves is known only as long as it is what was read."""

import types

import pytest
from pytensor.graph.op import Op
from pytensor.scan.op import Scan
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.type import TensorType

from pytensor_fuse._pytensor.compat.checks import Does
from pytensor_fuse._pytensor.graphs.comparison import compared
from support.programs.grounds import forget


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        (TensorType, ("dtype", "shape")),
        (Elemwise, ("scalar_op", "inplace_pattern")),
        (DimShuffle, ("input_ndim", "new_order")),
        (Op, None),
    ],
)
def test_compared(kind, attributes):
    found = compared(kind)
    assert found == attributes or (kind is DimShuffle and set(attributes) <= set(found))


def test_what_has_been_rewritten_is_not_known(monkeypatch):
    def comparing_more(self, other):
        return type(self) is type(other) and self.info == other.info and self.news == other.news

    rewritten = types.FunctionType(comparing_more.__code__, globals(), "__eq__")
    for name in ("__module__", "__qualname__"):
        setattr(rewritten, name, getattr(Scan.__eq__, name))
    assert compared(Scan) is not None
    monkeypatch.setattr(Scan, "__eq__", rewritten)
    assert compared(Scan) is None


@pytest.mark.parametrize(
    ("kind", "fact"),
    [
        (DimShuffle, Does("pytensor.graph.utils:MetaType.__new__")),
        (Scan, Does("pytensor.scan.op:Scan.__eq__")),
    ],
)
def test_what_nobody_has_read_is_not_known(kind, fact, monkeypatch):
    assert compared(kind) is not None
    forget(monkeypatch, fact)
    assert compared(kind) is None
