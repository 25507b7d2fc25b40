"""Linear algebra in extended precision, and the errors of results in lower precision.

The arrays contain mpmath's numbers, with a context of their own: nothing global changes. They are
exact copies of the arrays that the code under test receives, so the measured error is that of the
computation, not that of its input.
"""

import mpmath
import numpy as np
import scipy.linalg

_context = mpmath.mp.clone()
# For a matrix of condition 1e12, forty digits remain.
_context.dps = 52

extended = np.frompyfunc(lambda number: _context.mpf(float(number)), 1, 1)
root = np.frompyfunc(_context.sqrt, 1, 1)
exponential = np.frompyfunc(_context.exp, 1, 1)


def factored(a):
    """Return packed factors of a square matrix, by rows with partial pivoting, and their order."""
    lu = extended(a)
    n = len(lu)
    order = np.arange(n)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(lu[k:, k])))
        for rows in (lu, order):
            rows[[k, pivot]] = rows[[pivot, k]]
        lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= lu[k + 1 :, k, None] * lu[k, k + 1 :]
    return lu, order


def solved(factors, b):
    """Return the solution for right-hand sides, of float or extended numbers, in columns."""
    lu, order = factors
    x = (b if b.dtype == object else extended(b))[order].copy()
    n = len(lu)
    for k in range(n):
        x[k + 1 :] -= lu[k + 1 :, k, None] * x[k]
    for k in reversed(range(n)):
        x[k] /= lu[k, k]
        x[:k] -= lu[:k, k, None] * x[k]
    return x


def refined(a, b):
    """Return the solution of a float system, of a condition below 1e13, in quadratic time.

    The solution in floats is refined by residuals in extended precision; each round adds a few
    digits.
    """
    factors = scipy.linalg.lu_factor(a.astype("float64"))
    exact, x, residual = extended(a), extended(np.zeros(b.shape)), extended(b)
    for _ in range(60):
        correction = scipy.linalg.lu_solve(factors, residual.astype("float64"))
        x = x + extended(correction)
        if np.max(np.abs(correction)) <= 1e-40 * np.max(np.abs(x)):
            return x
        residual = extended(b) - exact @ x
    raise ArithmeticError("floats are too coarse for this matrix")


def inverse_columns(a, columns):
    """Return some columns of the inverse of a float matrix, of a condition below 1e13."""
    return refined(a, np.eye(len(a))[:, columns])


def log_determinant(a):
    """Return the logarithm of the absolute determinant of a matrix."""
    lu, _ = factored(a)
    return _context.fsum(_context.log(abs(number)) for number in np.diagonal(lu))


def error(computed, reference):
    """Return the largest error of an element, relative to the largest element."""
    reference = np.asarray(reference, dtype=object)
    difference = np.abs(extended(computed) - reference)
    return float(np.max(difference) / np.max(np.abs(reference)))
