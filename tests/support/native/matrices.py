"""Matrices for tests of the rules of linear algebra, and graphs that read them in many layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from pytensor.tensor.type import TensorType

from support.native.lowering import raw_graph, rewritten_graph, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable

SIZES = (0, 1, 2, 3, 5, 8)
# Relative error bounds of a few operations on small matrices.
RTOL = {"float64": 1e-11, "float32": 3e-4}


class Given(NamedTuple):
    """A matrix as an expression, with values of the inputs of the expression.

    Attributes
    ----------
    inputs
        The inputs.
    matrix
        The expression.
    values
        The values of the inputs.
    expected
        The value of the expression.
    """

    inputs: list[Any]
    matrix: Any
    values: list[np.ndarray]
    expected: np.ndarray


# Expressions of one input: their names, and how to derive the input from the matrix.
_LAYOUTS = {
    "itself": (lambda x: x, lambda a: a),
    "transpose": (lambda x: x.T, lambda a: a.T),
    "part": (lambda x: x[1:, :-1], lambda a: np.pad(a, ((1, 0), (0, 1)))),
    "reversed": (lambda x: x[::-1], lambda a: a[::-1]),
    "element of three": (lambda x: x[1], lambda a: np.stack([a + 1, a])),
    "computed": (lambda x: 2 * x, lambda a: a / 2),
}


@st.composite
def given_matrices(
    draw: st.DrawFn,
    *,
    kinds: Sequence[str] = ("any",),
    is_square: bool = True,
    dtypes: Sequence[str] = ("float64", "float32"),
    sizes: Sequence[int] = SIZES,
) -> Given:
    """Draw a matrix of one of several kinds: any, regular, singular, symmetric, positive."""
    kind = draw(st.sampled_from(kinds))
    rows = draw(st.sampled_from(sizes))
    columns = rows if is_square else draw(st.sampled_from(sizes))
    dtype = draw(st.sampled_from(dtypes))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    data = random.normal(size=(rows, columns))
    if dtype[0] != "f":
        data = random.integers(-9 if dtype[0] == "i" else 0, 9, (rows, columns)).astype(float)
    if kind == "regular":
        data += 3 * np.eye(rows, columns)
    elif kind == "singular" and columns:
        data[:, -1] = data[:, 0] if columns > 1 else 0
    elif kind == "symmetric":
        data = data + data.T
    elif kind == "positive":
        data = data @ data.T + np.eye(rows)
    name = draw(st.sampled_from(sorted(_LAYOUTS)))
    if dtype[0] != "f" and name == "computed":
        name = "itself"
    make, invert = _LAYOUTS[name]
    value = np.ascontiguousarray(invert(data.astype(dtype)))
    known = tuple([draw(st.sampled_from([None, length])) for length in value.shape])
    variable = TensorType(dtype, known)("x")
    return Given([variable], make(variable), [value], data.astype(dtype))


def results(
    inputs: Sequence[Variable], outputs: Sequence[Variable], values: Sequence[np.ndarray]
) -> list[list[np.ndarray]]:
    """Return the results of a graph, as written and as Numba mode rewrites it."""
    return [
        run(raw_graph(inputs, outputs), values),
        run(rewritten_graph(inputs, outputs), values),
        run(rewritten_graph(inputs, outputs, destroyed=[0]), values, destroyed=[0]),
    ]


def require_close(one: np.ndarray, other: np.ndarray, rtol: float) -> None:
    """Require that arrays are close relative to their largest numbers."""
    assert one.shape == other.shape
    scale = max(float(np.abs(other).max(initial=0.0)), 1.0)
    np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * scale)
