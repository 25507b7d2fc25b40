"""Further C functions with other signatures, in the module of the C wrapper."""

from __future__ import annotations

import ctypes

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_fuse._native.c_entry.function import native_graph
from pytensor_fuse._native.emission.c.function import CInterface, emit_c_module
from pytensor_fuse._native.emission.c.support import DOES_NOT_FIT, NEGATIVE_LENGTH
from pytensor_fuse._native.emission.layout import Argument, Returned
from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.model import Result
from pytensor_fuse._native.runtime.c_functions import CCode
from pytensor_fuse._native.runtime.compiling import compile_program
from support.native.functions import native_function

# A log density with the signature that samplers expect.
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


@pytest.mark.parametrize(
    ("lengths", "code", "details"),
    [
        ((2, 3), 0, (-9, -9, -9)),
        ((0, -1), NEGATIVE_LENGTH, (0, 1, -1)),
        ((-2, -3), NEGATIVE_LENGTH, (0, 0, -2)),
        ((0, 1 << 62), 0, (-9, -9, -9)),
        ((7, 1), DOES_NOT_FIT, (0, 7, 0)),
        ((1 << 32, 1 << 32), DOES_NOT_FIT, (0, (1 << 63) - 1, 0)),
    ],
)
def test_lengths_of_outputs_come_from_the_machine_code(
    lengths: tuple[int, int], code: int, details: tuple[int, ...]
) -> None:
    """Third-party rules may leave lengths that come from data unchecked."""
    b = Builder()
    given = b.given("input", 0, "i64", (2,))
    numbers = tuple(b.load(given, (b.index(k),)) for k in range(2))
    made = b.buffer("output", 0, "i64", numbers, is_once=True)
    b.program.results.append(Result("buffer", made))
    b.allocate(made)
    interface = CInterface((Argument("float64", (2,)),), (Returned("float64", 2),))
    loaded = CCode(emit_c_module(interface), "call", compile_program(b.program, [], since=0.0))
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 6)(loaded.address)
    values, memory = np.array(lengths), np.empty(6, "i8")
    found, told = np.full(2, -9), np.full(8, -9)
    returned = call(
        (ctypes.c_void_p * 1)(values.ctypes.data),
        (ctypes.c_int64 * 1)(2),
        (ctypes.c_void_p * 1)(memory.ctypes.data),
        (ctypes.c_int64 * 1)(6),
        found.ctypes.data,
        told.ctypes.data,
    )
    assert returned == code
    assert tuple(told[:3]) == details
    assert tuple(found) == lengths
