"""Approximations by polynomials and quotients of polynomials, with mpmath.

Polynomials are minimax ones: Remez's exchange (E. W. Cheney, "Introduction to Approximation
Theory", chapter 3). Quotients are interpolants at Chebyshev points, whose largest error is that of
the minimax ones but for a small factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath
from mpmath import mpf

Function = Callable[[mpf], mpf]

GRID = 16


def chebyshev_points(low: mpf, high: mpf, count: int) -> list[mpf]:
    """Return the zeros of a Chebyshev polynomial, moved to an interval."""
    return [
        (low + high) / 2 - (high - low) / 2 * mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * count))
        for k in range(count)
    ]


def evaluate(coefficients: Sequence[mpf], x: mpf) -> mpf:
    total = mpf(0)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def minimax(
    function: Function,
    interval: tuple[mpf, mpf],
    degree: int,
    weight: Function | None = None,
    digits: int = 40,
    rounds: int = 12,
) -> tuple[list[mpf], mpf]:
    """Return the coefficients of the minimax polynomial, and its largest weighted error."""
    with mpmath.workdps(digits):
        low, high = mpf(interval[0]), mpf(interval[1])
        count = degree + 2
        grid = chebyshev_points(low, high, GRID * count)
        values = [function(x) for x in grid]
        weights = [mpf(1) if weight is None else weight(x) for x in grid]
        chosen = [round((2 * k + 1) * GRID / 2) for k in range(count)]
        best: tuple[list[mpf], mpf] | None = None
        for _ in range(rounds):
            rows = [
                [grid[i] ** p for p in range(degree + 1)] + [(-1) ** k / weights[i]]
                for k, i in enumerate(chosen)
            ]
            solution = mpmath.lu_solve(
                mpmath.matrix(rows), mpmath.matrix([values[i] for i in chosen])
            )
            coefficients = [solution[k] for k in range(degree + 1)]
            errors = [
                (evaluate(coefficients, x) - value) * w
                for x, value, w in zip(grid, values, weights, strict=True)
            ]
            largest = max(abs(error) for error in errors)
            if best is None or largest < best[1]:
                best = coefficients, largest
            if largest <= abs(solution[degree + 1]) * mpf("1.001"):
                break
            exchanged = _extremes(errors, count)
            if exchanged is None or exchanged == chosen:
                break
            chosen = exchanged
        assert best is not None
        return best


def _extremes(errors: Sequence[mpf], count: int) -> list[int] | None:
    """Return where errors of alternating signs are largest, `count` of them in a row."""
    peaks: list[int] = []
    for index, error in enumerate(errors):
        if error == 0:
            continue
        if peaks and (errors[peaks[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = index
        else:
            peaks.append(index)
    while len(peaks) > count:
        if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]):
            peaks.pop(0)
        else:
            peaks.pop()
    return peaks if len(peaks) == count else None


def quotient(
    function: Function,
    interval: tuple[mpf, mpf],
    degrees: tuple[int, int],
    digits: int = 50,
) -> tuple[list[mpf], list[mpf], mpf]:
    """Return numerator, denominator (with constant 1) and largest error."""
    with mpmath.workdps(digits):
        low, high = mpf(interval[0]), mpf(interval[1])
        above, below = degrees
        points = chebyshev_points(low, high, above + below + 1)
        values = [function(x) for x in points]
        rows = [
            [x**p for p in range(above + 1)] + [-value * x**p for p in range(1, below + 1)]
            for x, value in zip(points, values, strict=True)
        ]
        solution = mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix(values))
        numerator = [solution[k] for k in range(above + 1)]
        denominator = [mpf(1)] + [solution[k] for k in range(above + 1, above + below + 1)]
        largest = mpf(0)
        for x in chebyshev_points(low, high, 4 * len(points)):
            error = evaluate(numerator, x) / evaluate(denominator, x) - function(x)
            largest = max(largest, abs(error))
        return numerator, denominator, largest
