"""Derive the coefficients of the mathematical functions, and write the module that holds them.

python scripts/mathematics/coefficients.py           # writes the module
python scripts/mathematics/coefficients.py NAME ...  # prints some of it
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import mpmath
from approximation import minimax, quotient
from mpmath import mpf

MODULE = (
    Path(__file__).resolve().parents[2] / "python/pytensor_fuse/_native/mathematics/coefficients.py"
)
DIGITS = 50
# The length of a line of the module.
WIDTH = 100
# Intervals are this much wider than what arguments are reduced to: reductions round.
MARGIN = mpf("1.0001")

Entry = tuple[str, list[mpf], mpf]


def taylor(terms: Callable[[int], mpf], x: mpf, count: int = 12) -> mpf:
    return mpmath.fsum(terms(k) * x**k for k in range(count))


def exponential() -> list[Entry]:
    half = mpmath.log(2) / 2 * MARGIN

    def rest(r: mpf) -> mpf:
        if abs(r) < mpf("1e-5"):
            return taylor(lambda k: 1 / mpmath.factorial(k + 3), r)
        return (mpmath.exp(r) - 1 - r - r**2 / 2) / r**3

    found, error = minimax(rest, (-half, half), 8, lambda r: abs(r) ** 3)
    # Arguments in two parts are reduced by the first one.
    wide = half + mpf("0.01")
    longer, longer_error = minimax(rest, (-wide, wide), 9, lambda r: abs(r) ** 3)
    return [("EXP", found, error), ("EXP_LONG", longer, longer_error)]


def power_of_two() -> list[Entry]:
    first = mpf(float(mpmath.log(2)))

    def rest(p: mpf) -> mpf:
        if abs(p) < mpf("1e-6"):
            x = p * mpmath.log(2)
            return mpmath.log(2) * taylor(lambda k: 1 / mpmath.factorial(k + 1), x) - first
        return mpmath.expm1(p * mpmath.log(2)) / p - first

    half = MARGIN / 2
    found, error = minimax(rest, (-half, half), 10, abs)
    return [("EXP2", found, error)]


def logarithm() -> list[Entry]:
    end = ((mpmath.sqrt(2) - 1) / (mpmath.sqrt(2) + 1)) ** 2 * MARGIN

    def rest(z: mpf) -> mpf:
        if z < mpf("1e-8"):
            return taylor(lambda k: mpf(2) / (2 * k + 3), z)
        s = mpmath.sqrt(z)
        return (mpmath.log((1 + s) / (1 - s)) / s - 2) / z

    found, error = minimax(rest, (mpf(0), end), 6, lambda z: z)
    return [("LOG", found, error)]


# Mantissas are cut in so many intervals, one of which has 1 in its middle.
POWER_INTERVALS = 128


def power() -> list[Entry]:
    """Logarithms near the middles of intervals, and a series for what is left of a mantissa.

    The inverses have so few bits that `mantissa * inverse - 1` is exact. Next to 1 they are 1, so
    that no logarithm is cancelled there. The first parts of the logarithms are multiples of 2**-42,
    so that sums with multiples of short logarithms of two are exact.
    """
    inverses = []
    end = mpf(0)
    for interval in range(POWER_INTERVALS):
        # Below 1, the bits of a double count in halves of those above.
        distance = interval - 74
        low, middle, high = (
            1 + place * mpf(2) ** (-8 if place < 0 else -7)
            for place in (distance - mpf("0.5"), mpf(distance), distance + mpf("0.5"))
        )
        unit = mpf(2) ** (-7 if distance < 0 else -8)
        inverse = mpf(1) if distance == -1 else mpmath.nint(1 / middle / unit) * unit
        end = max(end, abs(low * inverse - 1), abs(high * inverse - 1))
        inverses.append(inverse)

    def rest(r: mpf) -> mpf:
        if abs(r) < mpf("1e-6"):
            return taylor(lambda k: mpf((-1) ** k) / (k + 3), r)
        return (mpmath.log1p(r) - r + r**2 / 2) / r**3

    series, error = minimax(rest, (-end * MARGIN, end * MARGIN), 5, lambda r: r**2)
    logs = [-mpmath.log(inverse) for inverse in inverses]
    highs = [mpmath.nint(one * 2**42) / 2**42 for one in logs]
    lows = [one - high for one, high in zip(logs, highs, strict=True)]
    return [
        ("POWER_INVERSES", inverses, mpf(0)),
        ("POWER_LOGS", highs, mpf(2) ** -97),
        ("POWER_LOGS_LOW", lows, mpf(2) ** -97),
        ("POWER", series, error),
    ]


def sine() -> list[Entry]:
    end = (mpmath.pi / 4) ** 2 * MARGIN

    def sine_rest(z: mpf) -> mpf:
        if z < mpf("1e-6"):
            return taylor(lambda k: (-1) ** (k + 1) / mpmath.factorial(2 * k + 3), z)
        return (mpmath.sin(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z

    def cosine_rest(z: mpf) -> mpf:
        if z < mpf("1e-6"):
            return taylor(lambda k: (-1) ** k / mpmath.factorial(2 * k + 4), z)
        return (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z**2

    sines, sine_error = minimax(sine_rest, (mpf(0), end), 5, lambda z: z)
    cosines, cosine_error = minimax(cosine_rest, (mpf(0), end), 5, lambda z: z**2)
    return [("SINE", sines, sine_error), ("COSINE", cosines, cosine_error)]


def log_sine() -> list[Entry]:
    def rest(z: mpf) -> mpf:
        angle = mpmath.pi * mpmath.sqrt(z)
        return mpmath.log(mpmath.sin(angle) / angle) / z

    def cotangent_rest(z: mpf) -> mpf:
        r = mpmath.sqrt(z)
        return (mpmath.pi * mpmath.cot(mpmath.pi * r) - 1 / r) / r

    interval = mpf("1e-9"), mpf("0.25") * MARGIN
    logs, error = minimax(rest, interval, 13)
    cotangents, cotangent_error = minimax(cotangent_rest, interval, 14)
    return [("LOG_SINE", logs, error), ("COTANGENT", cotangents, cotangent_error)]


def stirling(w: mpf) -> mpf:
    """Return the remainder of Stirling's series for the logarithm of the gamma function."""
    x = 1 / mpmath.sqrt(w)
    leading = (x - mpf("0.5")) * mpmath.log(x) - x + mpmath.log(2 * mpmath.pi) / 2
    return (mpmath.loggamma(x) - leading) * x


def gamma_logarithm() -> list[Entry]:
    middle = mpf(7) / 16

    def near_zeros(a: mpf) -> mpf:
        # With its limits at the zeros of the denominator, by Taylor's series.
        for zero in (0, 1):
            d = a - zero
            if abs(d) < mpf("1e-9"):
                terms = (mpmath.polygamma(k, zero + 1) * d**k for k in range(4))
                factors = (1, 2, 6, 24)
                total = mpmath.fsum(t / f for t, f in zip(terms, factors, strict=True))
                return total / (a - 1 + zero) - middle
        return mpmath.loggamma(1 + a) / (a * (a - 1)) - middle

    above, below, error = quotient(near_zeros, (mpf(0), mpf(2)), (8, 8))
    tail, tail_error = minimax(stirling, (mpf("1e-6"), mpf("0.04")), 6)
    return [
        ("GAMMALN_ABOVE", above, error),
        ("GAMMALN_BELOW", below, error),
        ("GAMMALN_STIRLING", tail, tail_error),
    ]


def psi() -> list[Entry]:
    root = mpmath.findroot(mpmath.digamma, mpf("1.4616321449683623"))

    def near_root(v: mpf) -> mpf:
        return mpmath.digamma(v + 1) / (v + 1 - root) - 1

    def stirling(w: mpf) -> mpf:
        x = 1 / mpmath.sqrt(w)
        return (mpmath.log(x) - 1 / (2 * x) - mpmath.digamma(x)) / w

    above, below, error = quotient(near_root, (mpf(0), mpf(2)), (7, 6))
    tail, tail_error = minimax(stirling, (mpf("1e-6"), mpf("0.04")), 7)
    parts = [mpf(float(root - 1))]
    # What the last bits of the root change in the result.
    parts.append((root - 1 - parts[0]) * mpmath.polygamma(1, root))
    return [
        ("DIGAMMA_ROOT", parts, mpf(2) ** -107),
        ("DIGAMMA_ABOVE", above, error),
        ("DIGAMMA_BELOW", below, error),
        ("DIGAMMA_STIRLING", tail, tail_error),
    ]


# The variable of the scaled complementary error function is the reciprocal of x and this.
ERFCX_SHIFT = 3


def scaled_erfc(x: mpf) -> mpf:
    if x < 12:
        return mpmath.exp(x * x) * mpmath.erfc(x)
    fraction = mpf(0)
    for k in range(120, 0, -1):
        fraction = (mpf(k) / 2) / (x + fraction)
    return 1 / ((x + fraction) * mpmath.sqrt(mpmath.pi))


def error_function() -> list[Entry]:
    def small(z: mpf) -> mpf:
        return mpmath.erf(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1

    def scaled(u: mpf) -> mpf:
        if u < mpf("1e-8"):
            return (1 + ERFCX_SHIFT * u) / mpmath.sqrt(mpmath.pi)
        return scaled_erfc(1 / u - ERFCX_SHIFT) / u

    seam = mpf("0.58")
    found, error = minimax(small, (mpf("1e-12"), seam**2 * MARGIN), 9)
    end = 1 / (seam / MARGIN + ERFCX_SHIFT)
    far, far_error = minimax(scaled, (mpf(0), end), 22, lambda u: 1 / scaled(u))
    return [("ERF", found, error), ("ERFCX", far, far_error)]


def arcs() -> list[Entry]:
    def arctangent(z: mpf) -> mpf:
        if z < mpf("1e-8"):
            return taylor(lambda k: mpf((-1) ** (k + 1)) / (2 * k + 3), z)
        return (mpmath.atan(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z

    def arcsine(z: mpf) -> mpf:
        return (mpmath.asin(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z

    def sine(z: mpf) -> mpf:
        return (mpmath.sinh(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z

    end = (mpmath.sqrt(2) - 1) ** 2 * MARGIN
    tangents, tangent_error = minimax(arctangent, (mpf(0), end), 10, lambda z: z)
    interval = mpf("1e-12"), mpf("0.25") * MARGIN
    sines, sine_error = minimax(arcsine, interval, 11, lambda z: z)
    hyperbolic, hyperbolic_error = minimax(sine, (mpf("1e-12"), mpf(1)), 6, lambda z: z)
    return [
        ("ARCTAN", tangents, tangent_error),
        ("ARCSIN", sines, sine_error),
        ("SINH", hyperbolic, hyperbolic_error),
    ]


def psi_derivative() -> list[Entry]:
    def shifted(a: mpf) -> mpf:
        return mpmath.polygamma(1, 1 + a) - mpf("0.25")

    def stirling(w: mpf) -> mpf:
        x = 1 / mpmath.sqrt(w)
        return (mpmath.polygamma(1, x) - 1 / x - w / 2) * x**3

    above, below, error = quotient(shifted, (mpf(0), mpf(4)), (9, 9))
    tail, tail_error = minimax(stirling, (mpf("1e-6"), mpf("0.04")), 7)
    return [
        ("TRIGAMMA_ABOVE", above, error),
        ("TRIGAMMA_BELOW", below, error),
        ("TRIGAMMA_STIRLING", tail, tail_error),
    ]


# The polynomial of the inverse error function has this added.
ERFINV_MIDDLE = mpf("1.125")


def inverse_error_function() -> list[Entry]:
    def central(w: mpf) -> mpf:
        x = mpmath.sqrt(-mpmath.expm1(-w))
        return mpmath.erfinv(x) / x - ERFINV_MIDDLE

    # First approximations, to be made accurate by a step of Halley's method.
    def tail(s: mpf) -> mpf:
        # With w = s**2 = -log(q * (2 - q)).
        product = mpmath.exp(-s * s)
        q = product / (1 + mpmath.sqrt(1 - product))
        y = s - mpmath.log(s * mpmath.sqrt(mpmath.pi)) / (2 * s)
        for _ in range(7):
            value = mpmath.erfc(y)
            slope = -2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-y * y) / value
            y -= mpmath.log(value / q) / slope
        return y

    # Powers of numbers of both signs do not cancel as those of larger ones do.
    half = mpf("2.5")
    end = half * MARGIN
    near, error = minimax(lambda v: central(max(v + half, mpf("1e-12"))), (-half, end), 21)
    above, below, far_error = quotient(tail, (mpf("2.2"), mpf(6)), (5, 4))
    above_far, below_far, farther_error = quotient(tail, (mpf(6), mpf("27.4")), (5, 4))
    return [
        ("ERFINV", near, error),
        ("ERFINV_ABOVE", above, far_error),
        ("ERFINV_BELOW", below, far_error),
        ("ERFINV_FAR_ABOVE", above_far, farther_error),
        ("ERFINV_FAR_BELOW", below_far, farther_error),
    ]


def gamma() -> list[Entry]:
    def rest(a: mpf) -> mpf:
        with mpmath.workdps(3 * DIGITS):
            # The limits at the zeros of the denominator, nearly.
            if min(abs(a - zero) for zero in (0, 1, 2)) < mpf("1e-40"):
                a += mpf("1e-40")
            zeros = a * (a - 1)
            return (mpmath.gamma(1 + a) - 1 - zeros / 2) / (zeros * (a - 2))

    above, below, error = quotient(rest, (mpf(0), mpf(2)), (8, 8))
    tail, tail_error = minimax(stirling, (mpf("1e-5"), mpf("0.0625")), 8, mpmath.sqrt)
    return [
        ("GAMMA_ABOVE", above, error),
        ("GAMMA_BELOW", below, error),
        ("GAMMA_STIRLING", tail, tail_error),
    ]


FAMILIES: dict[str, Callable[[], list[Entry]]] = {
    family.__name__: family
    for family in (
        *(exponential, power_of_two, logarithm, power, sine, log_sine, gamma_logarithm, psi),
        *(error_function, arcs, psi_derivative, inverse_error_function, gamma),
    )
}


def lines(family: str) -> list[str]:
    """Return the lines of the module that one family of coefficients makes."""
    with mpmath.workdps(DIGITS):
        entries = FAMILIES[family]()
    result = []
    for name, coefficients, error in entries:
        size = f"2**{mpmath.nstr(mpmath.log(error, 2), 4)}" if error else "0"
        result.append(f"# Error {size}.")
        result.append(f'{name} = _numbers("""')
        digits = " ".join(re.sub(r"\.?0+p", "p", float(c).hex()) for c in coefficients)
        result.extend(textwrap.wrap(digits, WIDTH, break_on_hyphens=False))
        result.append('""")')
    return result


HEAD = '''"""Coefficients, written by `scripts/mathematics/coefficients.py`."""

from __future__ import annotations


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(map(float.fromhex, text.split()))


'''


def text() -> str:
    return HEAD + "\n".join(line for family in FAMILIES for line in lines(family)) + "\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        for family in sys.argv[1:]:
            print(*lines(family), sep="\n")
    else:
        MODULE.write_text(text())
