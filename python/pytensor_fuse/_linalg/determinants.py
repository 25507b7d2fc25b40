"""Determinants from a factorization: the number, its sign and its logarithm.

The logarithm is a sum of logarithms: a determinant of a large matrix overflows. PyTensor's own
rewriters would take a determinant from the factorization, too, but in PyTensor 3.0 they lose the
sign of the permutation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.scalar.basic import Abs, Log, Sign
from pytensor.tensor.elemwise import DimShuffle

from pytensor_fuse._linalg.matrices import scalar_op

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


def from_lu(fgraph: FunctionGraph, determinant: Any, packed: Any, pivots: Any) -> dict[Any, Any]:
    """Return what takes the place of a determinant, and of its sign and its logarithm.

    Parameters
    ----------
    fgraph
        The graph.
    determinant
        Of one matrix.
    packed, pivots
        The LU factorization of this matrix.
    """
    diagonal = pt.diagonal(packed)
    swaps = pt.neq(pivots, pt.arange(pivots.shape[0])).sum()
    permutation = (1 - 2 * (swaps % 2)).astype(determinant.type.dtype)
    return _served(
        fgraph,
        determinant,
        permutation * pt.prod(diagonal),
        permutation * pt.prod(pt.sign(diagonal)),
        pt.log(pt.abs(diagonal)).sum(),
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
        The Cholesky factor of this matrix.
    """
    diagonal = pt.diagonal(factor)
    logarithm = 2 * pt.log(diagonal).sum()
    found = _served(
        fgraph,
        determinant,
        pt.sqr(pt.prod(diagonal)),
        # NaN if the factorization has failed.
        pt.sign(diagonal).prod(),
        logarithm,
    )
    for view in _views(fgraph, determinant):
        for client in _clients(fgraph, view):
            if isinstance(scalar_op(client.outputs[0]), Log):
                found[client.outputs[0]] = _expanded(logarithm, client.outputs[0])
    return found


def _served(
    fgraph: FunctionGraph, determinant: Any, value: Any, sign: Any, logarithm: Any
) -> dict[Any, Any]:
    """Find what is made of a determinant, and what takes its place."""
    found = {determinant: value}
    for view in _views(fgraph, determinant):
        for client in _clients(fgraph, view):
            [result, *_] = client.outputs
            if isinstance(scalar_op(result), Sign):
                found[result] = _expanded(sign, result)
            elif isinstance(scalar_op(result), Abs):
                for again in _views(fgraph, result):
                    for other in _clients(fgraph, again):
                        if isinstance(scalar_op(other.outputs[0]), Log):
                            found[other.outputs[0]] = _expanded(logarithm, other.outputs[0])
    return found


def _clients(fgraph: FunctionGraph, variable: Any) -> Iterator[Apply[Any]]:
    for client, _ in fgraph.clients[variable]:
        if client.outputs:
            yield client


def _views(fgraph: FunctionGraph, variable: Any) -> Iterator[Any]:
    """Find a variable without axes, and those that are it with axes of length 1."""
    yield variable
    for client in _clients(fgraph, variable):
        if isinstance(client.op, DimShuffle):
            yield from _views(fgraph, client.outputs[0])


def _expanded(variable: Any, like: Any) -> Any:
    return variable.dimshuffle(("x",) * like.type.ndim) if like.type.ndim else variable
