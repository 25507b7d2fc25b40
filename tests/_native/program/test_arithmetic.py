"""Results of single operations."""

import math

import numpy as np
import pytest

from pytensor_fuse._native.program.arithmetic import NUMPY_DTYPES, cast_scalar, evaluate
from pytensor_fuse._native.program.operations import MATHEMATICS, OPERATIONS, result_dtype

INF, NAN = math.inf, math.nan
LEAST = -(2**63)


def result(name, dtype, *numbers):
    args = [NUMPY_DTYPES[dtype](number) for number in numbers]
    gives = result_dtype(name, (dtype,) * len(args))
    found = evaluate(name, gives, args)
    assert found.dtype == NUMPY_DTYPES[gives]
    return found.item()


@pytest.mark.parametrize(
    ("name", "dtype", "numbers", "expected"),
    [
        ("add", "i8", (127, 1), -128),
        ("sub", "u8", (0, 1), 255),
        ("mul", "i64", (2**62, 2), LEAST),
        ("neg", "i64", (LEAST,), LEAST),
        ("abs", "i8", (-128,), -128),
        ("neg", "u16", (1,), 65535),
        ("floordiv", "i64", (7, -2), -4),
        ("mod", "i64", (7, -2), -1),
        ("floordiv", "i64", (7, 0), 0),
        ("mod", "u8", (7, 0), 0),
        ("floordiv", "i64", (LEAST, -1), LEAST),
        ("mod", "i64", (LEAST, -1), 0),
        ("floordiv", "f64", (7.0, -2.0), -4.0),
        ("mod", "f64", (-7.0, 2.0), 1.0),
        ("floordiv", "f64", (7.0, 0.0), INF),
        ("mod", "f64", (7.0, 0.0), NAN),
        ("mod", "f32", (-1.0, INF), INF),
        ("div", "f64", (1.0, -0.0), -INF),
        ("shl", "i8", (1, 7), -128),
        ("shl", "i8", (1, 8), 0),
        ("shl", "i64", (1, -1), 0),
        ("shl", "u64", (3, 63), 2**63),
        ("shr", "i8", (-128, 7), -1),
        ("shr", "i8", (-128, 100), -1),
        ("shr", "i8", (-128, -1), -1),
        ("shr", "i8", (127, -1), 0),
        ("shr", "u8", (255, 4), 15),
        ("shr", "u8", (255, 8), 0),
        ("not", "i8", (0,), -1),
        ("not", "u8", (1,), 254),
        ("not", "bool", (True,), False),
        ("xor", "bool", (True, True), False),
        ("and", "u8", (6, 3), 2),
        ("minimum", "bool", (True, False), False),
        ("maximum", "f64", (1.0, NAN), NAN),
        ("maximum", "f64", (NAN, 1.0), NAN),
        ("minimum", "f32", (1.0, NAN), NAN),
        ("minimum", "f64", (1.0, 2.0), 1.0),
        ("rint", "f64", (2.5,), 2.0),
        ("rint", "f64", (-3.5,), -4.0),
        ("trunc", "f64", (-3.5,), -3.0),
        ("ne", "f64", (NAN, NAN), True),
        ("le", "f64", (NAN, NAN), False),
        ("lt", "u64", (1, 2**64 - 1), True),
        ("lt", "bool", (False, True), True),
        ("sqrt", "f64", (-1.0,), NAN),
        ("add", "f32", (1.0, 2.0**-24), 1.0),
        ("mul", "f32", (1e30, 1e30), INF),
    ],
)
def test_operation(name, dtype, numbers, expected):
    found = result(name, dtype, *numbers)
    assert found == expected or (found != found and expected != expected)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (-1.9, {"i64": -1, "i32": -1, "i16": -1, "i8": -1, "u8": 255, "u64": 2**64 - 1}),
        (300.5, {"i8": 44, "u8": 44, "i16": 300, "i64": 300}),
        (3e9, {"i32": -(2**31), "u32": 3000000000, "i16": 0, "u8": 0, "i64": 3000000000}),
        (-3e9, {"i32": -(2**31), "u32": -3000000000 % 2**32, "i8": 0}),
        (1e10, {"i32": -(2**31), "u32": 10**10 % 2**32, "u16": 0, "u64": 10**10}),
        (9.3e18, {"i64": LEAST, "u64": 9300000000000000000, "u32": 0}),
        (1.9e19, {"i64": LEAST, "u64": 0, "u32": 0, "i32": -(2**31)}),
        (-1e19, {"i64": LEAST, "u64": 2**63, "u32": 0}),
        (NAN, {"i64": LEAST, "i32": -(2**31), "i16": 0, "u64": 2**63, "u32": 0, "bool": True}),
        (INF, {"i64": LEAST, "u64": 0, "i8": 0, "bool": True}),
        (-0.0, {"i64": 0, "bool": False}),
        (1e-310, {"bool": True, "i64": 0}),
    ],
)
def test_floats_become_integers_as_on_x86(number, expected):
    for dtype, integer in expected.items():
        found = cast_scalar(np.float64(number), dtype)
        assert found.dtype == NUMPY_DTYPES[dtype]
        assert found.item() == integer, dtype


def test_integers_become_floats_and_each_other():
    # A detour through double precision would round twice.
    number = 2**60 + 2**36 + 1
    assert cast_scalar(np.int64(number), "f32").item() == 2.0**60 + 2.0**37
    assert cast_scalar(np.int64(-1), "u32").item() == 2**32 - 1
    assert cast_scalar(np.uint64(2**64 - 1), "i8").item() == -1
    assert cast_scalar(np.uint64(2**64 - 1), "f64").item() == 2.0**64
    assert cast_scalar(np.bool_(True), "f32").item() == 1.0
    assert cast_scalar(np.float64(1e300), "f32").item() == INF


def test_all_operations_have_a_result_of_their_dtype():
    for name, operation in OPERATIONS.items():
        if name in ("select", "cast"):
            continue
        for dtype in operation.takes:
            result(name, dtype, *(1,) * operation.arity)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("log1mexp", (-1.0,), math.log(1 - math.exp(-1))),
        ("log1mexp", (-1e-20,), math.log(1e-20)),
        ("softplus", (800.0,), 800.0),
        ("softplus", (-800.0,), 0.0),
        ("sigmoid", (0.0,), 0.5),
        ("trigamma", (1.0,), math.pi**2 / 6),
        ("pow", (2.0, 0.5), math.sqrt(2)),
        ("arctan2", (1.0, -1.0), 3 * math.pi / 4),
        ("gammainc", (1.0, 1.0), 1 - math.exp(-1)),
        ("jv", (0.0, 0.0), 1.0),
        ("betainc", (1.0, 1.0, 0.25), 0.25),
        ("hyp2f1", (1.0, 1.0, 2.0, -1.0), math.log(2)),
    ],
)
def test_mathematics(name, args, expected):
    assert name in MATHEMATICS
    assert result(name, "f64", *args) == pytest.approx(expected, rel=1e-14)
    assert result(name, "f32", *args) == pytest.approx(expected, rel=1e-6)
