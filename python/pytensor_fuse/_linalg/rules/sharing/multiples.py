"""Work on a multiple of a matrix becomes work on the matrix, where there is other work on it.

``(c A)^-1 = A^-1 / c`` and ``det(c A) = c^n det A``, for numbers that are not 0: the other rules,
which look for work on the same matrix, then find it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import pytensor.tensor as pt
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.scalar.basic import Abs, Log, Mul, Neg, TrueDiv
from pytensor.scalar.basic import Sign as ScalarSign
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.decomposition.lu import LUFactor
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.summary import Det
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.rules.determinants import of_uses
from pytensor_fuse._linalg.structure.matrices import (
    as_scalar,
    core_of,
    is_real_matrix,
    scalar_op,
    transpose_of,
)
from pytensor_fuse._linalg.structure.signs import Sign, number_of, sign_of
from pytensor_fuse._pytensor.rewriting.assumptions import is_known_positive_definite

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

_WORK = (Solve, MatrixInverse, Det, LUFactor, Cholesky)

# What a Solve may be told of its matrix that any multiple of it fulfils.
_KINDS = frozenset({"gen", "sym", "her"})


class Multiple(NamedTuple):
    """A number times a matrix."""

    number: Any
    matrix: Any


def work_on_multiple(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Solve with a matrix instead of its multiple, or invert it, or take its determinant."""
    core = core_of(node)
    if type(core) not in (Solve, MatrixInverse, Det):
        return None
    view, [old] = node.inputs[0], node.outputs
    found = multiple_of_matrix(view)
    if found is None or is_known_positive_definite(fgraph, view):
        return None
    number, matrix = found
    if type(core) is Det and _is_asked_for_itself(fgraph, old):
        return None
    same_view = _turned_back(view)
    if all(_turned_back(one.inputs[0]) is same_view for one in _work_on(fgraph, matrix)):
        # The other rules see that as it is.
        return None
    match core:
        case Solve():
            right = node.inputs[1]
            if core.assume_a not in _KINDS or right.type.ndim != core.b_ndim:
                return None
            replacements = {old: node.op(matrix, right) / number}
        case Det():
            determinant, n = node.op(matrix), matrix.shape[0].astype(matrix.type.dtype)
            replacements = of_uses(
                fgraph,
                old,
                lambda: determinant * number**n,
                lambda: pt.sign(determinant) * pt.sign(number) ** n,
                lambda: pt.log(pt.abs(determinant)) + n * pt.log(pt.abs(number)),
            )
        case _:
            inverse = node.op(matrix)
            replacements = {**_products(fgraph, old, inverse, number), old: inverse / number}
    if any(before.type.dtype != after.type.dtype for before, after in replacements.items()):
        return None
    copy_stack_trace(list(replacements), list(replacements.values()))
    return replacements


def _turned_back(matrix: Any) -> Any:
    inner = transpose_of(matrix)
    return matrix if inner is None or inner.type.ndim != 2 else _turned_back(inner)


def _products(fgraph: FunctionGraph, old: Any, new: Any, number: Any) -> dict[Any, Any]:
    """Return the products with a new inverse, divided by a number, for those with the old inverse.

    A product with an inverse becomes a solve, but not one with a multiple of it. What is computed
    of another product comes before that: in what takes its place, that is replaced next.
    """
    views = {old: new}
    products: dict[Any, Any] = {}
    for view in (left := [old]):
        for client, _ in fgraph.clients[view]:
            if not client.outputs or client.outputs[0] in products:
                continue
            [result, *_] = client.outputs
            if isinstance(core_of(client), Dot):
                if sum(one in views for one in client.inputs) == 1:
                    operands = [views.get(one, one) for one in client.inputs]
                    products[result] = client.op(*operands) / number
            elif result not in views and _is_moved(client):
                views[result] = client.op(views[view])
                left.append(result)
    if len(products) < 2:
        return products
    places = {node: i for i, node in enumerate(fgraph.toposort())}
    return dict(sorted(products.items(), key=lambda pair: -places[pair[0].owner]))


def _is_moved(client: Apply[Any]) -> bool:
    """Whether a client gives the same matrices, or their transposes, with more axes in front."""
    [result] = client.outputs[:1]
    [matrix, *_] = client.inputs
    if transpose_of(result) is matrix:
        return True
    if not isinstance(client.op, DimShuffle):
        return False
    n = matrix.type.ndim
    return sorted(map(str, client.op.new_order[-2:])) == [str(n - 2), str(n - 1)]


def _is_asked_for_itself(fgraph: FunctionGraph, determinant: Any) -> bool:
    """Whether more than the sign and the logarithm of a determinant is used.

    The power of the number that it is multiplied with may overflow, where the product does not.
    """
    for client, _ in fgraph.clients[determinant]:
        if not client.outputs:
            return True
        [result, *_] = client.outputs
        if isinstance(scalar_op(result), Abs):
            uses = [use.outputs for use, _ in fgraph.clients[result]]
            if not all(one and isinstance(scalar_op(one[0]), Log) for one in uses):
                return True
        elif not isinstance(scalar_op(result), ScalarSign):
            return True
    return False


def multiple_of_matrix(view: Any) -> Multiple | None:
    """Return the number and the matrix of which one is the product; None if it is not known.

    The number is not 0: it is a constant, or positive by its form.
    """
    op = scalar_op(view)
    if not isinstance(op, Mul | TrueDiv | Neg) or not is_real_matrix(view):
        return None
    if view.type.dtype != "float64":
        return None
    inputs = view.owner.inputs
    at = [i for i, one in enumerate(inputs) if not all(one.type.broadcastable)]
    if len(at) != 1 or (isinstance(op, TrueDiv) and at != [0]):
        return None
    matrix = inputs[at[0]]
    if not is_real_matrix(matrix) or matrix.type.dtype != "float64":
        return None
    number: Any = pt.constant(-1.0 if isinstance(op, Neg) else 1.0)
    for i, one in enumerate(inputs):
        if i != at[0]:
            if not _is_not_zero(one):
                return None
            scalar = as_scalar(one).astype("float64")
            number = number * scalar if isinstance(op, Mul) else number / scalar
    return Multiple(number, matrix)


def _is_not_zero(number: Any) -> bool:
    known = number_of(number)
    if known is not None:
        return known != 0 and math.isfinite(known)
    return sign_of(number) is Sign.POSITIVE


def _work_on(fgraph: FunctionGraph, matrix: Any) -> list[Apply[Any]]:
    """Find the work on a matrix, on its transpose, and on multiples of both."""
    inner = transpose_of(matrix)
    base = inner if inner is not None and inner.type.ndim == 2 else matrix
    views = [base]
    for view in views:
        for client, _ in fgraph.clients[view]:
            if not client.outputs:
                continue
            [result, *_] = client.outputs
            is_turned = transpose_of(result) is view and result.type.ndim == 2
            if is_turned or _is_multiple(result, view):
                views.append(result)
    return [
        client
        for view in views
        for client, at in fgraph.clients[view]
        if at == 0 and client.outputs and type(core_of(client)) in _WORK
    ]


def _is_multiple(result: Any, matrix: Any) -> bool:
    found = multiple_of_matrix(result)
    return found is not None and found.matrix is matrix
