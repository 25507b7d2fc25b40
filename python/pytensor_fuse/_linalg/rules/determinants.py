"""Determinants from a factorization: the number, its sign, its logarithm and the gradient of that.

The logarithm is a sum of logarithms, as the determinant of a large matrix overflows. PyTensor's own
rewriters take a determinant from a factorization, too, but in PyTensor 3.0 they lose the sign of
the permutation.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.basic import Abs, Log, Mul, Sign, TrueDiv
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.summary import Det

from pytensor_fuse._linalg.structure.clients import clients_of
from pytensor_fuse._linalg.structure.matrices import (
    core_of,
    scalar_op,
    transpose_of,
    without_expansion,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

    Made = Callable[[], Any]


# Ops between a determinant and the uses that are replaced.
_LOOKED_THROUGH = (Abs, Mul, TrueDiv)


def is_single_determinant(node: Apply[Any]) -> bool:
    """Whether a node computes the determinant of one matrix, not of each of a stack."""
    return type(core_of(node)) is Det and not node.outputs[0].type.ndim


def gradient_of_log_determinant(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Replace ``g / |det A| * sign(det A) * det A`` by ``g`` where it is a factor of ``A^-T``.

    PyTensor writes the gradient of ``log |det A|`` so. The three factors cancel if the inverse
    exists; if not, the inverse fails or is NaN.
    """
    if not is_single_determinant(node):
        return None
    [determinant] = node.outputs
    return {
        product: weight
        for absolute, _ in clients_of(fgraph, determinant)
        if isinstance(scalar_op(absolute.outputs[0]), Abs)
        for product, weight in _cancelled(fgraph, determinant, absolute.outputs[0])
        if weight.type.dtype == product.type.dtype
        and _only_scales_inverse(fgraph, product, node.inputs[0])
    }


def _only_scales_inverse(fgraph: FunctionGraph, number: Any, matrix: Any) -> bool:
    """Whether all uses of a number are products with the inverse of a matrix."""
    for client, _ in fgraph.clients[number]:
        if not client.outputs:
            return False
        [result, *_] = client.outputs
        if without_expansion(result) is number and result is not number:
            if not _only_scales_inverse(fgraph, result, matrix):
                return False
        elif not isinstance(scalar_op(result), Mul) or not any(
            _is_inverse(factor, matrix) for factor in client.inputs
        ):
            return False
    return True


def _is_inverse(variable: Any, matrix: Any) -> bool:
    inner = transpose_of(variable, expanded=True)
    node = (variable if inner is None else inner).owner
    return type(core_of(node)) is MatrixInverse and node.inputs[0] is matrix


def from_lu(
    fgraph: FunctionGraph, determinant: Any, packed: Any, pivots: Any, matrix: Any = None
) -> dict[Any, Any]:
    """Return the replacements of a determinant, its sign and its logarithm.

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
    swapped = pt.neq(pivots, pt.arange(pivots.shape[-1]))
    number, sign, logarithm = of_upper_factor(diagonal, swapped)
    if matrix is not None:
        is_finite = pt.invert(pt.isnan(matrix.sum(axis=(-2, -1))))
        is_singular = pt.isnan(diagonal.sum(axis=-1)) & is_finite
        zero = pt.zeros_like(number)
        number, sign = (pt.where(is_singular, zero, one) for one in (number, sign))
        logarithm = pt.where(is_singular, pt.log(zero), logarithm)
    return of_uses(fgraph, determinant, lambda: number, lambda: sign, lambda: logarithm)


def of_upper_factor(diagonal: Any, swapped: Any) -> tuple[Any, Any, Any]:
    """Return a determinant, its sign and its logarithm, or those of each of a stack.

    Parameters
    ----------
    diagonal
        That of the upper factor of an LU factorization.
    swapped
        Whether each row was swapped.
    """
    permutation = (1 - 2 * (swapped.sum(axis=-1) % 2)).astype(diagonal.type.dtype)
    return (
        permutation * pt.prod(diagonal, axis=-1),
        permutation * pt.prod(pt.sign(diagonal), axis=-1),
        pt.log(pt.abs(diagonal)).sum(axis=-1),
    )


def from_cholesky(fgraph: FunctionGraph, determinant: Any, factor: Any) -> dict[Any, Any]:
    """Return the replacements of a determinant, its sign and its logarithm.

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
    two = np.asarray(2, dtype=diagonal.type.dtype)
    return of_positive_definite(
        fgraph,
        determinant,
        lambda: pt.sqr(pt.prod(diagonal)),
        lambda: pt.mul(two, pt.log(diagonal).sum()),
    )


def of_positive_definite(
    fgraph: FunctionGraph, determinant: Any, number: Made, logarithm: Made
) -> dict[Any, Any]:
    """Return the replacements of a positive determinant, its sign and its logarithm.

    Parameters
    ----------
    fgraph
        The graph.
    determinant
        Of one matrix.
    number, logarithm
        Make the determinant, which may overflow, and its logarithm, which does not.
    """
    logarithm = cache(logarithm)

    def sign() -> Any:
        # NaN has no sign.
        return pt.where(pt.isnan(logarithm()), logarithm(), pt.ones_like(logarithm()))

    return of_uses(fgraph, determinant, number, sign, logarithm, is_positive=True)


def of_uses(
    fgraph: FunctionGraph,
    determinant: Any,
    number: Made,
    sign: Made,
    logarithm: Made,
    *,
    is_positive: bool = False,
) -> dict[Any, Any]:
    """Return the replacements of a determinant, of its sign and of its logarithm.

    Only those with a use in the graph are computed.

    Parameters
    ----------
    fgraph
        The graph.
    determinant
        Of one matrix, or of each of a stack.
    number, sign, logarithm
        Make the new ones; the logarithm is that of the absolute value.
    is_positive
        Whether the determinant is positive, so that its logarithm may be taken directly.
    """
    sign, logarithm = cache(sign), cache(logarithm)
    found: dict[Any, Any] = {}
    for view in _views(fgraph, determinant):
        for client, _ in clients_of(fgraph, view):
            [result, *_] = client.outputs
            if isinstance(scalar_op(result), Sign):
                found[result] = _expanded(sign(), result)
            elif is_positive and isinstance(scalar_op(result), Log):
                found[result] = _expanded(logarithm(), result)
            elif isinstance(scalar_op(result), Abs):
                for product, factor in _cancelled(fgraph, determinant, result):
                    found[product] = factor * (sign() if is_positive else sign() * sign())
                for again in _views(fgraph, result):
                    for other, _ in clients_of(fgraph, again):
                        if isinstance(scalar_op(other.outputs[0]), Log):
                            found[other.outputs[0]] = _expanded(logarithm(), other.outputs[0])
    if _is_left(fgraph, determinant, found):
        return {determinant: number(), **found}
    return found


def _is_left(fgraph: FunctionGraph, variable: Any, replaced: dict[Any, Any]) -> bool:
    """Whether a variable has uses that are not replaced."""
    left = [variable]
    seen = set(left)
    while left:
        for client, _ in fgraph.clients[left.pop()]:
            result = client.outputs[0] if client.outputs else None
            if result in replaced or result in seen:
                continue
            if result is None or not (
                isinstance(client.op, DimShuffle) or isinstance(scalar_op(result), _LOOKED_THROUGH)
            ):
                return True
            left.append(result)
            seen.add(result)
    return False


def _cancelled(fgraph: FunctionGraph, determinant: Any, absolute: Any) -> Iterator[tuple[Any, Any]]:
    """Find products ``g / |d| * sign(d) * d`` of the gradient of ``log |d|``, and their ``g``.

    The determinant ``d`` may overflow, and not all versions of PyTensor cancel the factors.
    """
    for divided, _ in clients_of(fgraph, absolute):
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
    for client, _ in clients_of(fgraph, variable):
        if isinstance(scalar_op(client.outputs[0]), Mul) and len(client.inputs) == 2:
            yield client.outputs[0]


def _views(fgraph: FunctionGraph, variable: Any) -> Iterator[Any]:
    """Find a scalar, and the variables that are it with axes of length 1."""
    yield variable
    if variable.type.ndim and not all(variable.type.broadcastable):
        return
    for client, _ in clients_of(fgraph, variable):
        if isinstance(client.op, DimShuffle):
            yield from _views(fgraph, client.outputs[0])


def _expanded(variable: Any, like: Any) -> Any:
    if like.type.ndim == variable.type.ndim:
        return variable
    return variable.dimshuffle(("x",) * like.type.ndim)
