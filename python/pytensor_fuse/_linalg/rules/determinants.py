"""Determinants from a factorization: the number, its sign, its logarithm and the gradient of that.

The logarithm is a sum of logarithms: a determinant of a large matrix overflows. PyTensor's own
rewriters would take a determinant from the factorization, too, but in PyTensor 3.0 they lose the
sign of the permutation.
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


# What of a determinant's uses is looked through, for those that are replaced.
_LOOKED_THROUGH = (Abs, Mul, TrueDiv)


def gradient_of_log_determinant(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Replace ``g / |det A| * sign(det A) * det A`` by ``g`` where it is a factor of ``A^-T``.

    So it is written as the gradient of ``log |det A|``. The three cancel where there is an inverse;
    where there is none, that fails anyway, or is not a number.
    """
    if type(core_of(node)) is not Det or node.outputs[0].type.ndim:
        return None
    [determinant] = node.outputs
    found = {}
    for client in _clients(fgraph, determinant):
        [result, *_] = client.outputs
        weight = _weight(result, determinant)
        if (
            weight is not None
            and weight.type.dtype == result.type.dtype
            and _only_scales_inverse(fgraph, result, node.inputs[0])
        ):
            found[result] = weight
    return found or None


def _weight(product: Any, determinant: Any) -> Any:
    """Return ``g`` of ``g / |det A| * sign(det A) * det A``; None if it is not that."""
    rest = _without_factor(product, lambda factor: factor is determinant)
    rest = _without_factor(
        rest,
        lambda factor: (
            isinstance(scalar_op(factor), Sign) and factor.owner.inputs[0] is determinant
        ),
    )
    if rest is None or not isinstance(scalar_op(rest), TrueDiv):
        return None
    weight, size = rest.owner.inputs
    is_size = isinstance(scalar_op(size), Abs) and size.owner.inputs[0] is determinant
    return weight if is_size else None


def _without_factor(product: Any, is_it: Callable[[Any], bool]) -> Any:
    """Return the other of two factors; None if neither is what is asked for."""
    if product is None or not isinstance(scalar_op(product), Mul):
        return None
    factors = product.owner.inputs
    at = next((i for i, factor in enumerate(factors) if is_it(factor)), None)
    return None if at is None or len(factors) != 2 else factors[1 - at]


def _only_scales_inverse(fgraph: FunctionGraph, number: Any, matrix: Any) -> bool:
    """Whether all that uses a number multiplies the inverse of a matrix with it."""
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
    inner = transpose_of(variable)
    node = (variable if inner is None else inner).owner
    return type(core_of(node)) is MatrixInverse and node.inputs[0] is matrix


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
        For each row whether it was swapped.
    """
    permutation = (1 - 2 * (swapped.sum(axis=-1) % 2)).astype(diagonal.type.dtype)
    return (
        permutation * pt.prod(diagonal, axis=-1),
        permutation * pt.prod(pt.sign(diagonal), axis=-1),
        pt.log(pt.abs(diagonal)).sum(axis=-1),
    )


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
    """Return what takes the place of a positive determinant, its sign and its logarithm.

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
        # What is NaN has no sign.
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
    """Return what takes the place of a determinant, of its sign and of its logarithm.

    Only what the graph has a use for is made: it would come into the graph, and be removed.

    Parameters
    ----------
    fgraph
        The graph.
    determinant
        Of one matrix, or of each of a stack.
    number, sign, logarithm
        Make the same, computed otherwise; the logarithm is that of the absolute value.
    is_positive
        Whether the determinant is, so that it may be followed by a logarithm at once.
    """
    sign, logarithm = cache(sign), cache(logarithm)
    found: dict[Any, Any] = {}
    for view in _views(fgraph, determinant):
        for client in _clients(fgraph, view):
            [result, *_] = client.outputs
            if isinstance(scalar_op(result), Sign):
                found[result] = _expanded(sign(), result)
            elif is_positive and isinstance(scalar_op(result), Log):
                found[result] = _expanded(logarithm(), result)
            elif isinstance(scalar_op(result), Abs):
                for product, factor in _cancelled(fgraph, determinant, result):
                    found[product] = factor * (sign() if is_positive else sign() * sign())
                for again in _views(fgraph, result):
                    for other in _clients(fgraph, again):
                        if isinstance(scalar_op(other.outputs[0]), Log):
                            found[other.outputs[0]] = _expanded(logarithm(), other.outputs[0])
    if _is_left(fgraph, determinant, found):
        return {determinant: number(), **found}
    return found


def _is_left(fgraph: FunctionGraph, variable: Any, replaced: dict[Any, Any]) -> bool:
    """Whether what stays in a graph is computed of a variable."""
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
