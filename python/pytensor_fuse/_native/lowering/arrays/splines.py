"""PyMC's SplineWrapper: a SciPy spline, evaluated as piecewise polynomials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pytensor.tensor.basic import constant

from pytensor_fuse._native.lowering.registry import dtype_refusal, lower
from pytensor_fuse._native.lowering.sorting.binary_search import place_in
from pytensor_fuse._native.lowering.tensors import DTYPES
from pytensor_fuse._pytensor.compat.checks import is_known

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value


# SciPy's codes for the extrapolation of a spline.
_GOES_ON: Final = 0
_IS_ZERO: Final = 1
_STAYS: Final = 3
# The method that this rule reimplements.
_PERFORM: Final = ("pymc.distributions.dist_math", "SplineWrapper.perform")


def _refuses(op: Any, node: Node) -> str | None:
    spline = op.spline
    if getattr(spline, "ext", None) not in (_GOES_ON, _IS_ZERO, _STAYS):
        return "a spline that raises outside of its interval, or is not one of SciPy's"
    if not (hasattr(spline, "get_knots") and hasattr(spline, "get_coeffs")):
        return "a spline whose coefficients are not known"
    if not is_known(type(op).perform, *_PERFORM):
        return "a PyMC that computes splines in another way than is known"
    return dtype_refusal(node)


@lower.register_named("pymc.distributions.dist_math.SplineWrapper", refuses=_refuses)
def _spline(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder, [given] = context.builder, inputs
    begins, end, coefficients = _pieces(op.spline)
    starts = context.constant_tensor(constant(begins))
    terms = [context.constant_tensor(constant(row)) for row in coefficients]
    first, last = [builder.constant("f64", float(one)) for one in (begins[0], end)]
    n_later = builder.index(len(begins) - 1)
    one, zero = builder.index(1), builder.constant("f64", 0)
    ext = op.spline.ext

    def at(index: Index) -> Value:
        asked = builder.cast(given.at(index), "f64")
        is_inside = builder.op("and", builder.op("ge", asked, first), builder.op("le", asked, last))
        place = asked
        if ext == _STAYS:
            place = builder.op("minimum", builder.op("maximum", asked, first), last)

        def begins_before(number: Value) -> Value:
            with builder.guarding():
                return builder.op("le", starts.at((builder.op("add", number, one),)), place)

        piece = (place_in(builder, n_later, begins_before),)
        with builder.guarding():
            distance = builder.op("sub", place, starts.at(piece))
            value = terms[0].at(piece)
            for term in terms[1:]:
                value = builder.op("add", builder.op("mul", value, distance), term.at(piece))
        if ext == _IS_ZERO:
            is_nan = builder.op("ne", asked, asked)
            value = builder.op("select", builder.op("or", is_inside, is_nan), value, zero)
        return builder.cast(value, DTYPES[node.outputs[0].type.dtype])

    return [context.materialized(DTYPES[node.outputs[0].type.dtype], given.lengths, at)]


def _pieces(spline: Any) -> tuple[np.ndarray, float, np.ndarray]:
    """Return the starts of the polynomials, the end of the last, and rows of coefficients."""
    from scipy.interpolate import PPoly

    places, numbers = spline.get_knots(), spline.get_coeffs()
    degree = len(numbers) - len(places) + 1
    # Multiple knots at both ends clamp the spline there.
    knots = np.pad(places, degree, mode="edge")
    made = PPoly.from_spline((knots, numbers, degree))
    # Coincident knots have no polynomial between them.
    pieces = degree + np.flatnonzero(places[:-1] < places[1:])
    return knots[pieces], float(places[-1]), np.ascontiguousarray(made.c[:, pieces])
