"""Scalar ops on all dtypes, as Elemwise and alone, against the Python linker."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytensor.scalar as ps
import pytensor.scalar.math as psm
import pytensor.tensor as pt
import pytest
from pytensor.scalar.basic import Composite, ScalarOp
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import MulWithoutZeros

from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.tensors import DTYPES
from support.native.lowering import check, raw_graph, require_near, require_same, run, stock
from support.native.ways import check_ways

FLOATS = ("float64", "float32")
SIGNED = ("int64", "int32", "int16", "int8")
UNSIGNED = ("uint64", "uint32", "uint16", "uint8")
INTEGERS = SIGNED + UNSIGNED
ALL = tuple(DTYPES)
# Each kind and width is combined with each other kind and width at least once.
PAIRS = [
    ("float64", "float64"),
    ("float32", "float32"),
    ("float64", "float32"),
    ("int8", "float32"),
    ("float32", "int64"),
    ("uint8", "float64"),
    ("int64", "int64"),
    ("int64", "uint64"),
    ("uint64", "int8"),
    ("int32", "uint32"),
    ("int16", "int8"),
    ("uint8", "int8"),
    ("uint16", "uint16"),
    ("uint64", "uint64"),
    ("bool", "int8"),
    ("float32", "bool"),
    ("bool", "bool"),
]


def special(dtype: str) -> np.ndarray:
    """Return numbers of a dtype at which ops have been wrong."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in FLOATS:
        numbers = [0.0, -0.0, 0.5, -0.5, 0.49999997, 1.0, -1.0, 1.5, -2.5, 3.0, 7.25, -40.0]
        numbers += [35.0, 1e5, np.inf, -np.inf, np.nan]
        return np.array(numbers, dtype)
    about = np.iinfo(dtype)
    numbers = {0, 1, 2, 3, 7, about.max, about.max - 1, about.min, about.min + 1}
    if about.min:
        numbers |= {-1, -2, -3}
    return np.array(sorted(numbers), dtype)


def grid(dtypes: tuple[str, ...]) -> list[np.ndarray]:
    """Return vectors in which all combinations of the dtypes' special numbers occur."""
    numbers = list(product(*map(special, dtypes)))
    return [
        np.array(column, dtype)
        for column, dtype in zip(zip(*numbers, strict=True), dtypes, strict=True)
    ]


def check_op(op: ScalarOp, dtypes: tuple[str, ...], *, rtol: float = 0.0) -> None:
    """Check a scalar op on vectors of dtypes; unsupported dtypes are skipped."""
    inputs = [pt.vector(dtype=dtype) for dtype in dtypes]
    try:
        outs = Elemwise(op)(*inputs, return_list=True)
    except (TypeError, NotImplementedError):
        return
    if any(out.type.dtype not in DTYPES for out in outs):
        return
    with np.errstate(all="ignore"):
        check(inputs, outs, grid(dtypes), rewrites=False, rtol=rtol)


@pytest.mark.parametrize("dtypes", PAIRS, ids="-".join)
@pytest.mark.parametrize(
    "op",
    [ps.add, ps.mul, ps.sub, ps.true_div, ps.int_div, ps.mod, ps.second],
    ids=str,
)
def test_arithmetic(op: ScalarOp, dtypes: tuple[str, str]) -> None:
    if op == ps.int_div and np.result_type(*map(np.dtype, dtypes)).kind == "f":
        check_division_of_floats(dtypes)
    else:
        check_op(op, dtypes)


def check_division_of_floats(dtypes: tuple[str, str]) -> None:
    """Check that floor division of floats agrees with compilers': NumPy gives 9 for 1.0 // 0.1."""
    inputs = [pt.vector(dtype=dtype) for dtype in dtypes]
    out = Elemwise(ps.int_div)(*inputs)
    given = grid(dtypes)
    one, other = (column.astype(out.type.dtype) for column in given)
    with np.errstate(all="ignore"):
        [found] = run(raw_graph(inputs, [out]), given)
        require_same(found, np.floor(one / other), f"{dtypes}")


@pytest.mark.parametrize("dtypes", PAIRS, ids="-".join)
def test_comparisons(dtypes: tuple[str, str]) -> None:
    for op in (ps.eq, ps.neq, ps.lt, ps.le, ps.gt, ps.ge):
        check_op(op, dtypes)


@pytest.mark.parametrize("dtypes", PAIRS, ids="-".join)
def test_bits_and_extremes(dtypes: tuple[str, str]) -> None:
    if np.result_type(*map(np.dtype, dtypes)).kind != "f":
        for op in (ps.and_, ps.or_, ps.xor):
            check_op(op, dtypes)
    # The order of the two zeros is unspecified.
    for op in (ps.maximum, ps.minimum):
        check_op(op, dtypes, rtol=1e-16)


@pytest.mark.parametrize("dtype", ALL)
def test_of_one_number(dtype: str) -> None:
    for op in (
        ps.neg,
        ps.abs,
        ps.sign,
        ps.sqr,
        ps.invert,
        ps.identity,
        ps.ceil,
        ps.floor,
        ps.trunc,
        ps.round_half_to_even,
        ps.round_half_away_from_zero,
        ps.isnan,
        ps.isinf,
        ps.reciprocal,
    ):
        check_op(op, (dtype,))
    check_op(ps.sqrt, (dtype,), rtol=0.0 if dtype in FLOATS else 1e-3)


@pytest.mark.parametrize("to", ALL)
def test_cast(to: str) -> None:
    for dtype in ALL:
        x = pt.vector("x", dtype=dtype)
        values = special(dtype)
        if to == "uint32" and dtype in FLOATS:
            # NumPy's results for overflowing numbers differ between its vectors and their
            # remainders.
            values = values[np.isfinite(values)]
        [found] = run(raw_graph([x], [Elemwise(ps.Cast(ps.get_scalar_type(to)))(x)]), [values])
        with np.errstate(all="ignore"):
            require_same(found, values.astype(to), "output")


@pytest.mark.parametrize("dtype", ALL)
def test_switch(dtype: str) -> None:
    for other in ("float64", "int8", dtype):
        check_op(ps.switch, (dtype, other, dtype))


@pytest.mark.parametrize(
    "dtypes",
    [
        ("float64",) * 3,
        ("float32", "int8", "float32"),
        ("int64", "int64", "int64"),
        ("uint8",) * 3,
        ("int8", "float32", "uint8"),
        ("int64", "int8", "int16"),
    ],
    ids="-".join,
)
def test_clip(dtypes: tuple[str, ...]) -> None:
    check_op(ps.clip, dtypes)


def test_bits_of_int64_and_uint64_are_refused() -> None:
    x, y = pt.vector(dtype="int64"), pt.vector(dtype="uint64")
    assert lower.refusal((x & y).owner) == "bits of int64 and uint64"


@pytest.mark.parametrize("dtype", FLOATS)
def test_mul_without_zeros(dtype: str) -> None:
    check_op(MulWithoutZeros(ps.upcast_out), (dtype, dtype), rtol=1e-7)


# Powers


@pytest.mark.parametrize("exponent", [-3, -1, 0, 1, 2, 3, 4, 7, 0.5])
@pytest.mark.parametrize("dtype", FLOATS)
def test_constant_power_of_floats(dtype: str, exponent: float) -> None:
    x = pt.vector("x", dtype=dtype)
    # NumPy computes a power of 0.5 as a square root, which differs for -inf.
    values = special(dtype) if exponent != 0.5 else np.abs(special(dtype))
    power = x ** pt.constant(exponent, dtype="int8" if exponent == int(exponent) else dtype)
    assert power.dtype == dtype
    with np.errstate(all="ignore"):
        check([x], [power], [values], rtol=1e-15 if dtype == "float64" else 5e-7)


@pytest.mark.parametrize("dtypes", [("float64", "float64"), ("float32", "int8")], ids="-".join)
def test_power_of_floats(dtypes: tuple[str, str]) -> None:
    check_op(ps.pow, dtypes, rtol=1e-15 if dtypes[0] == "float64" else 2e-7)


@pytest.mark.parametrize(
    "dtypes", [("int64", "uint8"), ("uint8", "uint8"), ("bool", "bool"), ("uint64", "uint64")]
)
def test_power_of_integers(dtypes: tuple[str, str]) -> None:
    check_op(ps.pow, dtypes)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_constant_power_of_integers(dtype: str) -> None:
    x = pt.vector("x", dtype=dtype)
    powers = [x ** pt.constant(np.array(number, "int8")) for number in (0, 1, 2, 5, 100)]
    check([x], powers, [special(dtype)], rewrites=False, rtol=1e-14)


def test_powers_that_may_be_negative_are_refused() -> None:
    x, y = pt.lvectors("xy")
    for exponent in (y, pt.constant(np.array(-1, "int8"))):
        assert "exponent may be negative" in (lower.refusal((x**exponent).owner) or "")
    assert lower.refusal((x ** pt.constant(np.array(2, "int8"))).owner) is None
    assert lower.refusal((pt.vector() ** y).owner) is None


# Functions


def tolerance(dtype: str) -> float:
    return 1e-12 if dtype == "float64" else 1e-5


FUNCTIONS = """
    log log2 log10 log1p exp exp2 expm1 cos arccos sin arcsin tan arctan cosh arccosh sinh arcsinh
    tanh arctanh erf erfc erfcx erfinv erfcinv gamma gammaln psi tri_gamma sigmoid softplus log1mexp
    j0 j1 i0 i1 ndtri_exp
"""


@pytest.mark.parametrize("name", FUNCTIONS.split())
def test_function(name: str) -> None:
    op = getattr(ps, name, None) or getattr(psm, name, None)
    if op is None:
        pytest.skip("not in this version of PyTensor")
    for dtype in FLOATS:
        check_op(op, (dtype,), rtol=tolerance(dtype))
    # NumPy's functions of small integers have only a few digits.
    x, y = pt.vector("x", dtype="int32"), pt.vector("y", dtype="uint8")
    values = np.array([0, 1, 2, 3, 20])
    if name not in ("ndtri_exp", "log1mexp"):
        outs = [Elemwise(op)(x), Elemwise(op)(y)]
        check([x, y], outs, [values, values], rtol=2e-3, rewrites=False)


@pytest.mark.parametrize("name", ["arctan2", "jv", "ive", "kve", "owens_t"])
def test_function_of_two(name: str) -> None:
    op = getattr(ps, name, None) or getattr(psm, name)
    x, y = pt.vectors("xy")
    values = [np.array([0.5, 1, 2, -1, 3]), np.array([0.1, -2, 3, 0.5, 10])]
    check([x, y], [Elemwise(op)(x, y)], values, rtol=1e-12)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "gammaincinv", "gammainccinv"])
def test_incomplete_gamma(name: str) -> None:
    x, y = pt.vectors("xy")
    values = [np.array([0.5, 1, 2, 4, 30.0]), np.array([0.1, 0.2, 0.7, 0.0, 0.9])]
    check([x, y], [Elemwise(getattr(psm, name))(x, y)], values, rtol=1e-12)


@pytest.mark.parametrize("name", ["betainc", "betaincinv"])
def test_incomplete_beta(name: str) -> None:
    x, y, z = pt.vectors("xyz")
    values = [np.array([0.5, 1, 4]), np.array([0.1, 0.2, 7]), np.array([0.2, 1.0, 0.4])]
    check([x, y, z], [Elemwise(getattr(psm, name))(x, y, z)], values, rtol=1e-10)


def test_hyp2f1() -> None:
    inputs = pt.vectors("abcz")
    values = [np.array([0.5, 1]), np.array([2, 3.0]), np.array([1.5, 4]), np.array([0.2, -0.7])]
    check(inputs, [Elemwise(psm.hyp2f1)(*inputs)], values, rtol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 8, 20])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_polygamma_of_known_order(order: int, dtype: str) -> None:
    x = pt.vector("x", dtype=dtype)
    numbers = [
        0.3,
        1,
        2.5,
        9,
        9.5,
        10,
        41,
        700,
        3e8,
        1e30,
        np.inf,
        np.nan,
        0.0,
        -0.0,
        -3,
        -1e9,
        -np.inf,
        -2.6,
        -40.3,
    ]
    data = np.array([number for number in numbers if dtype != "int16" or 0 < number < 1e4])
    with np.errstate(all="ignore"):
        check_ways(
            [x], [pt.polygamma(order, x)], [data], rtol=2e-14 if dtype == "float64" else 1e-6
        )


def test_polygamma_of_an_order_that_is_not_known() -> None:
    n, x = pt.lvector("n"), pt.vector("x")
    for order in (n, 21, -1, np.array([1, 2])):
        assert "order" in (lower.refusal(pt.polygamma(order, x).owner) or "")


# Several ops


def test_sums_of_many_terms_round_as_they_go() -> None:
    x, y, z = pt.fvector("x"), pt.fvector("y"), pt.dvector("z")
    values = [np.float32([1e8, 0.1]), np.float32([1.0, 0.2]), np.array([1e-3, 1.0])]
    with np.errstate(all="ignore"):
        [expected] = stock([x, y, z], [pt.add(x, y, z)], values, "NUMBA")
    [out] = run(raw_graph([x, y, z], [pt.add(x, y, z)]), values)
    assert np.array_equal(out, expected)


def test_composite_of_several_outputs_and_dtypes() -> None:
    x, y, n = ps.float64("x"), ps.float32("y"), ps.int8("n")
    inner = Composite([x, y], [x * y, ps.exp(y)])
    a, b = inner(x, y)
    op = Composite([x, y, n], [a + n, ps.switch(ps.gt(x, n), b, y), n // ps.constant(3), a])
    inputs = [pt.vector(dtype="float64"), pt.vector(dtype="float32"), pt.vector(dtype="int8")]
    values = grid(("float64", "float32", "int8"))
    outs = Elemwise(op)(*inputs)
    # The Python linker confuses the outputs of the inner graph.
    expected = stock(inputs, outs, values, "NUMBA")
    for one, other in zip(run(raw_graph(inputs, outs), values), expected, strict=True):
        require_near(one, other, "output", 1e-6)


def test_scalars_that_are_no_arrays() -> None:
    x, n = pt.dscalar("x"), pt.lscalar("n")
    a, b = pt.scalar_from_tensor(x), pt.scalar_from_tensor(n)
    out = pt.tensor_from_scalar(ps.add(a * a, b))
    check([x, n], [out, pt.tensor_from_scalar(b // 2)], [1.5, -3], rewrites=False)


def test_constants() -> None:
    x = pt.vector("x")
    check([x], [x + 1, x * np.array([1.0, -0.0, 3.0]), pt.exp(np.float64(2)) + x], [np.arange(3.0)])


@pytest.mark.parametrize("dtype", ["complex128", "float16"])
def test_other_dtypes_are_refused(dtype: str) -> None:
    x = pt.vector("x", dtype=dtype)
    assert lower.refusal((x + x).owner) == f"no dtype {dtype}"


def test_unknown_ops_are_refused() -> None:
    class Strange(ps.UnaryScalarOp):
        def impl(self, x: float) -> float:
            return x

    x = pt.vector("x")
    strange = Strange(ps.same_out, name="strange")
    assert "no rule for the scalar op" in (lower.refusal(Elemwise(strange)(x).owner) or "")
    y = ps.float64()
    inside = Composite([y], [ps.exp(strange(y))])
    assert "no rule for the scalar op" in (lower.refusal(Elemwise(inside)(x).owner) or "")


# Loops


def test_loop_until() -> None:
    x, limit = ps.float64("x"), ps.float64("limit")
    following = x * 2.0
    op = ps.ScalarLoop([x], [following], [limit], until=following > limit)
    n = pt.vector("n", dtype="int64")
    xs, limits = pt.vectors("xy")
    n_steps = np.array([0, 1, 5, 100, 2000, 2000, -3])
    values = [n_steps, np.array([1.0, 1, 1, 1, 1, 1e-300, 1]), np.array([0, 0, 0, 8, 1e9, 1, 2.0])]
    check([n, xs, limits], Elemwise(op)(n, xs, limits), values)


def test_loop_for_so_many_steps() -> None:
    x, step = ps.float64("x"), ps.float64("step")
    op = ps.ScalarLoop([x], [x * 0.5 + step], [step])
    xs = pt.vector("x")
    out = Elemwise(op)(pt.constant(np.array(7)), xs, xs)
    check([xs], [out], [np.arange(4.0)], rewrites=False)
    n = pt.vector("n", dtype="int64")
    assert "number of steps" in (lower.refusal(Elemwise(op)(n, xs, xs).owner) or "")


def test_gradient_of_an_incomplete_function() -> None:
    a, x = pt.vectors("ax")
    out = pt.grad(pt.gammainc(a, x).sum(), a)
    values = [np.array([0.5, 2, 30.0]), np.array([0.2, 3, 1.0])]
    expected = stock([a, x], [out], values)
    [found] = run(raw_graph([a, x], [out]), values)
    np.testing.assert_allclose(found, expected[0], rtol=1e-9)
