"""Messages of failed checks are the same text wherever a function is called from."""

from __future__ import annotations

import re
from typing import Any

import numba
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from pytensor_fuse import explain
from pytensor_fuse.native import lower
from pytensor_fuse.reports import NativeState
from support.native.functions import native_function
from support.numba_only import numba_mirrored

X = pt.vector("x")


class Long(Op):
    """An op that raises a text unless its argument is long."""

    __props__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def make_node(self, x: Any) -> Apply[Any]:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = inputs[0].copy()


@lower.register(Long)
def long_rule(op: Any, node: Any, context: Any, inputs: Any) -> Any:
    builder, [x] = context.builder, inputs
    n, least = x.lengths[0], builder.index(-5)
    is_long = builder.op("gt", n, builder.index(5))
    builder.check(is_long, ValueError, op.text, n, least)
    return [context.materialized(x.dtype, x.lengths, x.at)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Größe {0}, nicht {1}", "Größe 2, nicht -5"),
        ("長さ {0} > {1} 🙂", "長さ 2 > -5 🙂"),
        ("50% of {1} is %d, %s, {0}{{0}}", "50% of -5 is %d, %s, 2{0}"),
        ("a zero \0 and {0} and {1}", "a zero \0 and 2 and -5"),
        ("half a character \ud800 {0} {1}", "half a character \ud800 2 -5"),
    ],
)
def test_any_text_may_have_numbers_in_it(text, told):
    x = np.ones(2)
    function = native_function([X], Long(text)(X))
    call = function.vm.jit_fn
    in_parts = pytensor.function([X], numba_mirrored(Long(text)(pt.exp(X) * 2 + X)), mode="NUMBA")
    assert explain(in_parts, "native").state is NativeState.PARTS
    for one in (call, numba.njit(lambda x: call(x)), function, in_parts):
        with pytest.raises(ValueError, match=re.escape(told)) as caught:
            one(x)
        # PyTensor's functions append the location.
        assert str(caught.value).startswith(told)
