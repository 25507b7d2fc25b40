"""Functions of C of other signatures, in the module of the one that calls machine code."""

from __future__ import annotations

import ctypes

import numpy as np
import pytensor
import pytensor.tensor as pt

from pytensor_fuse._native.c_entry.function import native_graph
from pytensor_fuse._native.emission.c_function import emit_c_module
from pytensor_fuse._native.runtime.c_functions import CCode
from support.native_functions import native_function

# As samplers call a density.
DENSITY = """\
define i64 @density(i64 %dim, ptr %x, ptr %gradient, ptr %value, ptr %user_data) nounwind {
  %inputs = alloca ptr
  store ptr %x, ptr %inputs
  %lengths = alloca i64
  store i64 %dim, ptr %lengths
  %outputs = alloca [2 x ptr]
  store ptr %value, ptr %outputs
  %second = getelementptr ptr, ptr %outputs, i64 1
  store ptr %gradient, ptr %second
  %capacities = alloca [2 x i64]
  store i64 1, ptr %capacities
  %room = getelementptr i64, ptr %capacities, i64 1
  store i64 %dim, ptr %room
  %code = call i64 @call(ptr %inputs, ptr %lengths, ptr %outputs, ptr %capacities, ptr null, \
ptr null)
  ret i64 %code
}"""


def test_a_callback_may_have_another_signature() -> None:
    x, data = pt.vector("x"), pytensor.shared(np.arange(4.0))
    density = -((pt.exp(x) - data) ** 2).sum()
    function = native_function([x], [density, pytensor.grad(density, x)])
    graph = native_graph("the test", function, "values")
    text = emit_c_module(graph.interface, functions=[DENSITY])
    assert text == emit_c_module(graph.interface, functions=[DENSITY])
    code = CCode(text, "density", graph.compiled, graph.bound)
    kinds = [ctypes.c_int64, *[ctypes.c_void_p] * 4]
    callback = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(code.address)
    value, gradient, at = np.empty(()), np.empty(4), np.linspace(-1.0, 1.0, 4)

    def call(n: int) -> int:
        addresses = [one.ctypes.data for one in (at, gradient, value)]
        return int(callback(n, *addresses, None))

    assert call(4) == 0
    for found, expected in zip((value, gradient), function(at), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert call(3) > 0
