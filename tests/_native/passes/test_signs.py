"""Forms for nonnegative arguments, and powers with a shared logarithm, keep the results."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import pytensor_fuse
from pytensor_fuse._native.passes.fusion import fused
from pytensor_fuse._native.passes.powers import with_shared_logs
from pytensor_fuse._native.passes.rewrite import rewritten
from pytensor_fuse._native.passes.signs import by_signs
from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.model import For, Op, Result
from pytensor_fuse._native.program.text import print_program
from pytensor_fuse._native.program.verify import verify
from pytensor_fuse._native.program.walking import statements_in
from pytensor_fuse._native.runtime.constants import positive_constants
from support.effort import IS_DEEP, examples
from support.native.functions import native_function
from support.native.machine import MACHINES, compiled, run_code
from support.native.outcomes import Case, assert_same_outcome, run
from support.native.programs.nests import native_programs

DEEP = settings(max_examples=100_000)


def positive_buffers(case):
    known = positive_constants(case.constants, range(len(case.constants)))
    return [
        number
        for number, about in enumerate(case.program.buffers)
        if about.kind == "constant" and about.position in known
    ]


@DEEP if IS_DEEP else examples(8)
@given(native_programs(longest=5, most_nests=5), st.booleans())
def test_all_programs(case, is_fused):
    program = fused(case.program) if is_fused else case.program
    text = print_program(program)
    for after in (
        by_signs(program, [] if is_fused else positive_buffers(case)),
        with_shared_logs(program),
    ):
        verify(after)
        assert print_program(program) == text
        assert_same_outcome(run(case), run(case, after))


def over(arrays, write, *, n_constants=0):
    """Return a case whose program computes elements from those of arrays of equal length."""
    b = Builder()
    first = arrays[0]
    buffers = [b.given("input", k, "f64", first.shape) for k in range(len(arrays) - n_constants)]
    buffers += [b.given("constant", k, "f64", first.shape) for k in range(n_constants)]
    length = b.index(first.size)
    values = []
    with b.loop(length) as loop:
        for value in write(b, [b.load(one, [loop.index]) for one in buffers]):
            out = b.buffer("output", len(values), b.dtype(value), [length])
            b.store(out, [loop.index], value)
            values.append(out)
    for out in values:
        b.program.results.append(Result("buffer", out))
        b.allocate_before_use(out)
    b.place_allocations()
    n = len(arrays) - n_constants
    return Case(b.program, arrays[:n], arrays[n:])


def names(program):
    return [one.name for one in statements_in(program.body) if isinstance(one, Op)]


FUNCTIONS = ("gammaln", "gamma", "digamma", "trigamma")
SPECIAL = np.array([0.0, 5e-324, 1e-310, 2.3e-308, 1e-9, 1.0, 2.0, 4.0, 5.0, 180.0, 1e305, np.inf])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_forms_have_the_same_bits(name, machine):
    rng = np.random.default_rng(1)
    values = np.concatenate([SPECIAL, 10.0 ** rng.uniform(-310, 308, 500), [np.nan]])
    values = np.concatenate([values, rng.uniform(0, 10, 500)])
    case = over([values], lambda b, x: [b.op(name, *x), b.op(f"{name}_of_positive", *x)])
    function = compiled(case.program, MACHINES[machine], uses_library=True)
    usual, form = run_code(function, case.inputs)
    np.testing.assert_array_equal(form, usual)
    assert (np.signbit(form) == np.signbit(usual))[~np.isnan(usual)].all()


@pytest.mark.parametrize("machine", MACHINES)
def test_powers_by_a_shared_logarithm_have_the_same_bits(machine):
    rng = np.random.default_rng(2)
    bases = np.concatenate([SPECIAL, -SPECIAL, [np.nan, -2.5], 10.0 ** rng.uniform(-320, 308, 300)])
    exponents = np.concatenate([[0.0, -0.0, 1.0, 3.0, -2.0, 0.5, np.inf, -np.inf, np.nan], [0.3]])
    x, y = (grid.ravel() for grid in np.meshgrid(bases, exponents))
    case = over([x, y], lambda b, v: [b.op("pow", *v), b.op("pow", v[0], b.op("neg", v[1]))])
    shared = rewritten(with_shared_logs(case.program))
    assert names(shared).count("pow_log") == 1
    assert names(shared).count("pow_by_log") == 2
    usual = compiled(case.program, MACHINES[machine], uses_library=True)
    by_log = compiled(shared, MACHINES[machine], uses_library=True)
    for one, other in zip(run_code(by_log, case.inputs), run_code(usual, case.inputs), strict=True):
        np.testing.assert_array_equal(one, other)
        assert (np.signbit(one) == np.signbit(other))[~np.isnan(other)].all()


def test_a_scale_and_a_count_are_not_negative():
    def write(b, values):
        scale, count, other = b.op("exp", values[0]), values[1], values[2]
        return [
            b.op("gammaln", b.op("add", scale, count)),
            b.op("digamma", b.op("mul", scale, b.constant("f64", 0.5))),
            b.op("gammaln", b.op("sub", scale, count)),
            b.op("gammaln", b.op("add", scale, other)),
            b.op("gammaln", b.op("mul", scale, b.constant("f64", -0.0))),
        ]

    counts, others = np.array([0.0, 3.0]), np.array([0.0, -3.0])
    case = over([np.array([0.3, -0.2]), counts, others], write, n_constants=2)
    after = by_signs(case.program, positive_buffers(case))
    assert [name for name in names(after) if "gamma" in name] == [
        "gammaln_of_positive",
        "digamma_of_positive",
        *["gammaln"] * 3,
    ]


def test_an_exponential_is_not_needed_to_see_that_it_is_not_zero():
    edge = float.fromhex("-0x1.74910d52d3051p+9")
    values = np.array([0.0, 700.0, -800.0, np.nan, np.inf, -np.inf, edge, np.nextafter(edge, -1e9)])
    zero = 0.0

    def write(b, x):
        e = b.op("exp", *x)
        return [b.op("gt", e, b.constant("f64", zero)), b.op("lt", b.constant("f64", zero), e)]

    case = over([values], write)
    after = rewritten(by_signs(case.program, []))
    assert "exp" not in names(after)
    before = run_code(compiled(case.program, MACHINES["128"], uses_library=True), case.inputs)
    for one, other in zip(run(case, after).outputs, before, strict=True):
        np.testing.assert_array_equal(one, other)
    assert before[0].tolist() == [True, True, False, False, True, False, True, False]


def test_sums_of_what_is_not_negative_are_not():
    b = Builder()
    x = b.given("input", 0, "f64", (None,))
    zero = b.constant("f64", 0.0)
    with b.loop(b.program.buffers[x].lengths[0]) as loop:
        total = b.reduce(loop, "add", zero, b.op("abs", b.load(x, [loop.index])))
    out = b.buffer("output", 0, "f64", ())
    b.allocate(out)
    b.store(out, (), b.op("gammaln", total))
    b.program.results.append(Result("buffer", out))
    after = by_signs(b.program, [])
    assert names(after) == ["abs", "gammaln_of_positive"]
    assert any(isinstance(one, For) for one in after.body)


@pytest.mark.parametrize("size", [5, 5000])
def test_data_of_other_signs_are_not_taken_for_positive_ones(size):
    """Graphs that differ only in large constants share one cached rewrite."""
    scale = pt.scalar("scale")
    rng = np.random.default_rng(size)
    for low in (0.5, -7.5):
        data = rng.uniform(low, low + 7, size=size)
        function = native_function([scale], pt.gammaln(pt.exp(scale) + data))
        text = pytensor_fuse.explain(function, "native").text
        assert ("gammaln_of_positive" in text) == (low > 0)
        np.testing.assert_allclose(function(0.1), special.gammaln(np.exp(0.1) + data), rtol=1e-11)


def test_integers_that_wrap_may_be_negative():
    places = pt.lvector("places")
    small = pt.constant(np.array([100, 120], "int8"))[places].sum(dtype="int8", acc_dtype="int8")
    large = pt.constant(np.array([2**62, 5]))[places].prod()
    outputs = [pt.gammaln(one.astype("float64") + 0.5) for one in (small, large)]
    found = native_function([places], outputs)(np.array([0, 0]))
    np.testing.assert_allclose(found, special.gammaln([-56 + 0.5, 0.5]), rtol=1e-12)
