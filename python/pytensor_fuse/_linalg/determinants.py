"""Determinants from a factorization: the number, its sign and its logarithm.

The logarithm is a sum of logarithms: a determinant of a large matrix overflows. PyTensor's own
rewriters would take a determinant from the factorization, too, but in PyTensor 3.0 they lose the
sign of the permutation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.scalar.basic import Abs, Log, Mul, Sign, TrueDiv
from pytensor.tensor.elemwise import DimShuffle

from pytensor_fuse._linalg.matrices import scalar_op

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


def from_lu(
    fgraph: FunctionGraph, determinant: Any, packed: Any, pivots: Any, matrix: Any = None
) -> dict[Any, Any]:
    """Return what takes the place of a determinant, and of its sign and its logarithm.

    Parameters
    ----------
    fgraph
        The graph.
    determinant
        Of one matrix, or of each of a stack.
    packed, pivots
        The LU factorization of this matrix: NaN if it is singular.
    matrix
        The matrices, or their transposes, if the determinant of a singular one is to be 0.
    """
    diagonal = pt.diagonal(packed, axis1=-2, axis2=-1)
    swaps = pt.neq(pivots, pt.arange(pivots.shape[-1])).sum(axis=-1)
    permutation = (1 - 2 * (swaps % 2)).astype(determinant.type.dtype)
    number = permutation * pt.prod(diagonal, axis=-1)
    sign = permutation * pt.prod(pt.sign(diagonal), axis=-1)
    logarithm = pt.log(pt.abs(diagonal)).sum(axis=-1)
    if matrix is not None:
        is_finite = pt.invert(pt.isnan(matrix.sum(axis=(-2, -1))))
        is_singular = pt.isnan(diagonal.sum(axis=-1)) & is_finite
        zero = pt.zeros_like(number)
        number, sign = (pt.where(is_singular, zero, one) for one in (number, sign))
        logarithm = pt.where(is_singular, pt.log(zero), logarithm)
    return of_uses(fgraph, determinant, number, sign, logarithm)


def from_cholesky(fgraph: FunctionGraph, determinant: Any, factor: Any) -> dict[Any, Any]:
    """Return what takes the place of a determinant, and of its sign and its logarithm.

    Parameters
    ----------
    fgraph
        The graph.
    determinant
        Of one positive definite matrix.
    factor
        The Cholesky factor of this matrix: NaN if the factorization has failed.
    """
    diagonal = pt.diagonal(factor)
    logarithm = 2 * pt.log(diagonal).sum()
    return of_positive_definite(fgraph, determinant, pt.sqr(pt.prod(diagonal)), logarithm)


def of_positive_definite(
    fgraph: FunctionGraph, determinant: Any, number: Any, logarithm: Any
) -> dict[Any, Any]:
    """Return what takes the place of a positive determinant, its sign and its logarithm.

    Parameters
    ----------
    fgraph
        The graph.
    determinant
        Of one matrix.
    number, logarithm
        The determinant, which may overflow, and its logarithm, which does not.
    """
    # What is NaN has no sign.
    sign = pt.where(pt.isnan(logarithm), logarithm, pt.ones_like(logarithm))
    return of_uses(fgraph, determinant, number, sign, logarithm, is_positive=True)


def of_uses(
    fgraph: FunctionGraph,
    determinant: Any,
    number: Any,
    sign: Any,
    logarithm: Any,
    *,
    is_positive: bool = False,
) -> dict[Any, Any]:
    """Return what takes the place of a determinant, of its sign and of its logarithm.

    Parameters
    ----------
    fgraph
        The graph.
    determinant
        Of one matrix, or of each of a stack.
    number, sign, logarithm
        The same, computed otherwise; the logarithm is that of the absolute value.
    is_positive
        Whether the determinant is, so that it may be followed by a logarithm at once.
    """
    found = {determinant: number}
    for view in _views(fgraph, determinant):
        for client in _clients(fgraph, view):
            [result, *_] = client.outputs
            if isinstance(scalar_op(result), Sign):
                found[result] = _expanded(sign, result)
            elif is_positive and isinstance(scalar_op(result), Log):
                found[result] = _expanded(logarithm, result)
            elif isinstance(scalar_op(result), Abs):
                for product, factor in _cancelled(fgraph, determinant, result):
                    found[product] = factor * (sign if is_positive else sign * sign)
                for again in _views(fgraph, result):
                    for other in _clients(fgraph, again):
                        if isinstance(scalar_op(other.outputs[0]), Log):
                            found[other.outputs[0]] = _expanded(logarithm, other.outputs[0])
    return found


def _cancelled(fgraph: FunctionGraph, determinant: Any, absolute: Any) -> Iterator[tuple[Any, Any]]:
    """Find products ``g / |d| * sign(d) * d``, which the gradient of ``log |d|`` has, and their g.

    The determinant ``d`` may overflow, and what is made of it is not cancelled by PyTensor in all
    versions.
    """
    for divided in _clients(fgraph, absolute):
        quotient = divided.outputs[0]
        if not isinstance(scalar_op(quotient), TrueDiv) or divided.inputs[1] is not absolute:
            continue
        for one in _products(fgraph, quotient):
            others = [part for part in one.owner.inputs if part is not quotient]
            is_signed = len(others) == 1 and isinstance(scalar_op(others[0]), Sign)
            if not is_signed or others[0].owner.inputs[0] is not determinant:
                continue
            for product in _products(fgraph, one):
                if [part for part in product.owner.inputs if part is not one] == [determinant]:
                    yield product, divided.inputs[0]


def _products(fgraph: FunctionGraph, variable: Any) -> Iterator[Any]:
    for client in _clients(fgraph, variable):
        if isinstance(scalar_op(client.outputs[0]), Mul) and len(client.inputs) == 2:
            yield client.outputs[0]


def _clients(fgraph: FunctionGraph, variable: Any) -> Iterator[Apply[Any]]:
    for client, _ in fgraph.clients[variable]:
        if client.outputs:
            yield client


def _views(fgraph: FunctionGraph, variable: Any) -> Iterator[Any]:
    """Find a variable without axes, and those that are it with axes of length 1."""
    yield variable
    if variable.type.ndim and not all(variable.type.broadcastable):
        return
    for client in _clients(fgraph, variable):
        if isinstance(client.op, DimShuffle):
            yield from _views(fgraph, client.outputs[0])


def _expanded(variable: Any, like: Any) -> Any:
    if like.type.ndim == variable.type.ndim:
        return variable
    return variable.dimshuffle(("x",) * like.type.ndim)
