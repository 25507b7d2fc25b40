"""Work on a multiple of a matrix becomes work on the matrix, if the graph has other work on it.

``(c A)^-1 = A^-1 / c`` and ``det(c A) = c^n det A`` for nonzero numbers. Then the other rules,
which match work on the same matrix, share the factorization.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import pytensor.tensor as pt
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
from pytensor_fuse._linalg.structure.clients import clients_of, last_first, views_of
from pytensor_fuse._linalg.structure.matrices import (
    Scaled,
    as_scalar,
    core_of,
    is_real_matrix,
    scalar_op,
    scaled_parts,
    transpose_of,
    without_transposes,
)
from pytensor_fuse._linalg.structure.signs import Sign, number_of, sign_of
from pytensor_fuse._pytensor.rewriting.assumptions import is_known_positive_definite

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

_WORK = (Solve, MatrixInverse, Det, LUFactor, Cholesky)

# Assumptions of a Solve that any multiple of the matrix fulfils, too.
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
    base, _ = without_transposes(view)
    if all(without_transposes(one.inputs[0])[0] is base for one in _work_on(fgraph, matrix)):
        # The other rules share this work already.
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
    return replacements


def _products(fgraph: FunctionGraph, old: Any, new: Any, number: Any) -> dict[Any, Any]:
    """Return the products with a new inverse, divided by a number, for those with the old inverse.

    A product with an inverse becomes a solve, but not one with a multiple of it. Products of
    products come first, so that their replacements contain the inner ones, which are next.
    """
    views = {old: new}
    products: dict[Any, Any] = {}
    for view in (left := [old]):
        for client, _ in clients_of(fgraph, view):
            [result, *_] = client.outputs
            if result in products:
                continue
            if isinstance(core_of(client), Dot):
                if sum(one in views for one in client.inputs) == 1:
                    operands = [views.get(one, one) for one in client.inputs]
                    products[result] = client.op(*operands) / number
            elif result not in views and _is_moved(client):
                views[result] = client.op(views[view])
                left.append(result)
    return last_first(fgraph, products)


def _is_moved(client: Apply[Any]) -> bool:
    """Whether a client only transposes the matrices, or puts axes in front."""
    [result] = client.outputs[:1]
    [matrix, *_] = client.inputs
    if transpose_of(result, expanded=True) is matrix:
        return True
    if not isinstance(client.op, DimShuffle):
        return False
    n = matrix.type.ndim
    return sorted(map(str, client.op.new_order[-2:])) == [str(n - 2), str(n - 1)]


def _is_asked_for_itself(fgraph: FunctionGraph, determinant: Any) -> bool:
    """Whether a determinant has uses other than its sign and logarithm.

    The power of the number may overflow where their product does not.
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
    """Return the number and the matrix whose product a matrix is; None if it is not known.

    The number is a nonzero constant, or positive by its form.
    """
    op = scalar_op(view)
    if not isinstance(op, Mul | TrueDiv | Neg) or not is_real_matrix(view):
        return None
    if view.type.dtype != "float64":
        return None
    scaled = Scaled(view.owner.inputs[0], []) if isinstance(op, Neg) else scaled_parts(view)
    if scaled is None:
        return None
    matrix, numbers = scaled
    if not is_real_matrix(matrix) or matrix.type.dtype != "float64":
        return None
    number: Any = pt.constant(-1.0 if isinstance(op, Neg) else 1.0)
    for one in numbers:
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
    views = views_of(fgraph, without_transposes(matrix)[0], _viewed)
    return [
        client
        for view in views
        for client, at in clients_of(fgraph, view)
        if at == 0 and type(core_of(client)) in _WORK
    ]


def _viewed(variable: Any) -> Any:
    """Return the matrix of which a variable is the transpose or a multiple; else None."""
    if variable.type.ndim != 2:
        return None
    inner = transpose_of(variable)
    found = multiple_of_matrix(variable) if inner is None else None
    return inner if found is None else found.matrix
