"""Each rule given what is singular, not finite, empty, small, of other types, or of wrong lengths.

What stock PyTensor computes is what is to come out; where it raises, so must we.
"""

import warnings

import numpy as np
import pytensor
import pytest
from pytensor.tensor.linalg import det, inv

import pytensor_fuse
from pytensor_fuse._activation.passes.linalg.table import _RULES
from pytensor_fuse._linalg.notes import notes_of
from support.linalg.cases import (
    CASES,
    FACTOR,
    OF_KNOWN_SIZES,
    OF_NOTES,
    OF_UNKNOWN_SIZES,
    N,
    given,
    values_of,
)
from support.linalg.rules import PYTHON, compile_both, only_linalg
from support.linalg.structures import LAYOUTS
from support.switching import switched

# In Python, what SciPy solves in place must not be written, and fused reciprocals are those of
# single precision.
EXACT = PYTHON.excluding("inplace", "fusion")


LENGTHS = ValueError, AssertionError, IndexError


def outcome(function, values):
    """Return what a function gives, or the class of the exception that it raises."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return [np.asarray(one) for one in function(*values)]
    except Exception as error:
        # LinAlgError is a ValueError, too, and lengths that differ are any of these.
        return ValueError if isinstance(error, LENGTHS) else type(error)


def compare(ours, stock, values, what, rtol=1e-8):
    """Compare what is finite in stock, and which exception is raised."""
    mine, theirs = outcome(ours, values), outcome(stock, values)
    if what in BETTER:
        return
    if isinstance(mine, type) or isinstance(theirs, type):
        # Where a general solve fails in Python, PyTensor has NaN in the shape of the matrix, so
        # that what is computed of it may fail, too.
        has_failed = mine is ValueError and not isinstance(theirs, type)
        has_failed = has_failed and np.isnan(theirs[0]).all()
        assert mine is theirs or (has_failed and what.startswith(OF_GENERAL_SOLVES)), what
        return
    is_nan = any(np.isnan(other).any() for other in theirs)
    assert not is_nan or any(np.isnan(one).any() for one in mine), what
    for one, other in zip(mine, theirs, strict=True):
        if np.isnan(one).all() and np.isnan(other).all():
            continue
        assert (one.shape, one.dtype) == (other.shape, other.dtype), what
        # Of what is not a number the sign may be one.
        both = np.isfinite(other) & np.isfinite(one)
        assert is_nan or np.isfinite(one)[np.isfinite(other)].all(), what
        scale = np.abs(other[both]).max(initial=1e-300)
        np.testing.assert_allclose(
            one[both], other[both], rtol=rtol, atol=rtol * scale, err_msg=what
        )


OF_DIAGONALS = {
    "diagonal_of_gradient",
    *(rule for rule in CASES if "tridiagonal" in rule or "banded" in rule),
}
OF_TRIANGLES = ("triangular_inverse", "diagonal_of_triangular", "product_that_cancels")
BETTER = frozenset(
    {
        # The elements of a product underflow, or overflow.
        "cholesky_of_triangular_product, small matrix",
        *(f"product_that_cancels_inverse, {size} matrix" for size in ("large", "small")),
        # Not finite, where stock's inverse raises an exception.
        *(f"{rule}, zero matrix" for rule in CASES if rule.startswith(OF_TRIANGLES)),
        # In stock a determinant underflows, and with it its sign, which PyTensor 3.0
        # multiplies with.
        "gradient_of_log_determinant, small matrix",
        "kronecker_determinant, small factor",
        "kronecker_gradient, small factor",
        "block_of_gradient, small factor",
        "kronecker_gradient, large vector",
        # Infinite, where stock takes infinite from infinite.
        "gradient_of_diagonal_matrix, large vector",
        "gradient_of_diagonal_matrix, large other vector",
        # So close to singular that it is as stock happens to round it; and if it is singular, the
        # result is not finite, where stock's inverse raises an exception.
        *(f"{rule}, large vector" for rule in CASES if rule in OF_DIAGONALS),
        *(f"{rule}, no diagonal" for rule in CASES if rule in OF_DIAGONALS),
    }
)

OF_GENERAL_SOLVES = ("solve_of_thin_product", "kronecker_solve")


def rules():
    # One is applied at two places.
    return list(dict.fromkeys(rule.rule for _, rule in _RULES))


def test_each_rule_has_a_case():
    assert sorted(rules()) == sorted(CASES)


def compiled(rule, *, is_static):
    inputs = given(is_static=is_static)
    # A rule that comes before it may take its case.
    first = {"linalg_work_on_definite_matrix"} - {f"linalg_{rule}"}
    ours, stock = compile_both(list(inputs), CASES[rule](inputs), EXACT.excluding(*first))
    if rule not in OF_NOTES | (OF_UNKNOWN_SIZES if is_static else OF_KNOWN_SIZES):
        applied = notes_of(ours.maker.fgraph).applied.values()
        assert f"linalg_{rule}" in {one.rule for one in applied}
    return ours, stock


def odd_matrices(n):
    yield "zero", np.zeros((n, n))
    yield "singular", np.ones((n, n))
    yield "indefinite", np.diag(np.where(np.arange(n) % 2, -1.0, 2.0))
    yield "negative", -np.eye(n)
    yield "not symmetric", np.triu(np.ones((n, n))) + np.eye(n)
    yield "NaN", np.full((n, n), np.nan)
    yield "one NaN", np.where(np.arange(n * n).reshape(n, n) == n * n - 1, np.nan, np.eye(n))
    yield "large", 1e200 * np.eye(n)
    yield "small", 1e-200 * np.eye(n)


def odd_values(n):
    """Find values of which one is odd."""
    ordinary = values_of(n=n)
    yield "ordinary", ordinary
    for name, matrix in odd_matrices(n):
        yield f"{name} matrix", ordinary._replace(a=matrix, b=matrix)
    for name, matrix in odd_matrices(FACTOR):
        yield f"{name} factor", ordinary._replace(left=matrix)
    for name, vector in (
        ("zero", np.zeros(n)),
        ("one NaN", np.where(np.arange(n) == 1, np.nan, ordinary.y)),
        ("large", np.full(n, 1e200)),
    ):
        yield f"{name} vector", ordinary._replace(y=vector)
        yield f"{name} other vector", ordinary._replace(v=vector)
    # Without a diagonal a tridiagonal matrix of odd size is singular.
    yield "no diagonal", ordinary._replace(u=np.full(n, -4.0))
    yield "zero number", ordinary._replace(number=np.array(0.0))
    yield "zero thin", ordinary._replace(thin=np.zeros_like(ordinary.thin))
    yield "NaN thin", ordinary._replace(thin=np.full_like(ordinary.thin, np.nan))
    for layout, arranged in LAYOUTS.items():
        matrices = [arranged(one) if one.ndim == 2 else one for one in ordinary]
        yield layout, type(ordinary)(*matrices)
    frozen = type(ordinary)(*map(np.array, ordinary))
    for one in frozen:
        one.flags.writeable = False
    yield "not to be written", frozen


@pytest.mark.parametrize("rule", CASES)
def test_odd_values(rule):
    ours, stock = compiled(rule, is_static=rule not in OF_UNKNOWN_SIZES)
    for name, values in odd_values(N):
        before = [one.copy() for one in values]
        compare(ours, stock, values, f"{rule}, {name}")
        for one, other in zip(before, values, strict=True):
            np.testing.assert_array_equal(one, other)


def wrong_lengths(n):
    ordinary = values_of(n=n)
    longer = values_of(n=n + 1)
    for field in ("a", "b", "u", "v", "y", "thin"):
        yield f"longer {field}", ordinary._replace(**{field: getattr(longer, field)})
        if field not in "ab":
            yield f"one of {field}", ordinary._replace(**{field: getattr(ordinary, field)[:1]})
    for field in ("a", "b"):
        yield f"wide {field}", ordinary._replace(**{field: getattr(longer, field)[:n]})
        yield f"high {field}", ordinary._replace(**{field: getattr(longer, field)[:, :n]})


@pytest.mark.parametrize("rule", CASES)
def test_lengths_that_are_not_known(rule):
    ours, stock = compiled(rule, is_static=False)
    # Of fewer than two elements beside the diagonal, stock makes matrices that do not fit.
    for n in (3, 6) if rule in OF_DIAGONALS else (0, 1, 2, 6):
        compare(ours, stock, values_of(n=n), f"{rule}, {n} rows")
    may_raise = rule in OF_DIAGONALS or "definite" in rule or "toeplitz" in rule
    for name, values in wrong_lengths(6):
        if may_raise and outcome(ours, values) is ValueError:
            # In Python, PyTensor broadcasts what it says it does not, or writes past the diagonal.
            continue
        compare(ours, stock, values, f"{rule}, {name}")


# Of these stock's are no better.
TOLERANCES = {"float32": 2e-3, "complex128": 1e-8, "int64": 1e-8}


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_other_types(dtype):
    inputs = given(dtype)
    outputs = []
    for rule, case in CASES.items():
        try:
            outputs += case(inputs)
        except (TypeError, NotImplementedError, AttributeError):
            # PyTensor has no such operation on this type.
            assert dtype != "float32", rule
    ours, stock = compile_both(list(inputs), outputs, EXACT)
    compare(ours, stock, values_of(dtype), dtype, rtol=TOLERANCES[dtype])


BATCHED = [
    "solve_of_outer_product",
    "inverse_of_factorized_matrix",
    "work_on_definite_matrix",
    "inverse_from_cholesky",
    "diagonal_added_in_place",
    "sum_of_diagonal_matrix",
    "product_with_outer_product",
]


def test_batches():
    inputs = given(batch=(2,))
    outputs = [one for rule in BATCHED for one in CASES[rule](inputs)]
    ours, stock = compile_both(list(inputs), outputs, EXACT)
    compare(ours, stock, values_of(batch=(2,)), "batch")


def test_shared_variables_that_are_updated():
    matrix = pytensor.shared(values_of().a, "a", shape=(N, N))
    inputs = given()._replace(a=matrix)
    rule_outputs = [
        CASES[rule](inputs) for rule in ("inverse_of_factorized_matrix", "cholesky_gradient")
    ]
    [inverse, determinant], [gradient] = rule_outputs
    found = []
    for settings in (only_linalg(), {}):
        matrix.set_value(values_of().a)
        with (
            pytensor_fuse.enabled(False),
            switched(**settings or dict.fromkeys(only_linalg(), False)),
        ):
            step = pytensor.function(
                [inputs.y],
                [matrix, determinant, gradient],
                updates={matrix: 0.5 * (inverse + inverse.T)},
                mode=EXACT,
            )
        found.append([step(values_of().y) for _ in range(3)] + [[matrix.get_value()]])
    for mine, theirs in zip(*found, strict=True):
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9)


def test_the_matrix_is_an_output_too():
    inputs = given()
    outputs = [inputs.a, inv(inputs.a), det(inputs.a), inputs.a]
    ours, stock = compile_both([inputs.a], outputs)
    a = values_of().a
    for borrowed in (a, np.asfortranarray(a)):
        for one, other in zip(ours(borrowed), stock(borrowed), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(borrowed, a)
