"""Sums with diagonal matrices, without a diagonal matrix in memory.

``K + c I`` is one pass over ``K``, fused with the computation of ``K``; the identity as a matrix
would be filled and read in addition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.basic import Add, Mul
from pytensor.tensor.basic import AllocDiag

from pytensor_fuse._linalg.structure.clients import clients_of
from pytensor_fuse._linalg.structure.diagonal import is_identity
from pytensor_fuse._linalg.structure.matrices import is_real_matrix, long_axes, scalar_op

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


_ONE: Final = np.ones((1, 1))


def diagonal_added_in_place(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Add to a matrix where its indices are equal, and zero elsewhere."""
    if len(node.outputs) != 1:
        # Nodes of any `Blockwise` op come here; an LU factorization has two outputs.
        return None
    [diagonal] = node.outputs
    if not is_real_matrix(diagonal):
        return None
    if is_identity(diagonal):
        size, entries = node.inputs[0], None
    elif isinstance(node.op, AllocDiag) and node.op.offset == 0 and node.inputs[0].type.ndim == 1:
        vector: Any = node.inputs[0]
        size, entries = vector.shape[0], vector[:, None]
    else:
        return None
    index = pt.arange(size)
    on_diagonal = pt.eq(index[:, None], index[None, :])
    replacements: dict[Any, Any] = {}
    for term, factors in _multiples(fgraph, diagonal):
        parts = factors if entries is None else [entries, *factors]
        value = pt.mul(*parts) if parts[1:] else parts[0] if parts else _ONE
        zero = np.zeros((1, 1), value.dtype)
        placed = pt.switch(on_diagonal, value, zero).astype(term.type.dtype)
        for total, others in _sums(fgraph, term):
            new = total.owner.op(*others, placed)
            if new.type.dtype == total.type.dtype:
                replacements[total] = new
    return replacements


def _multiples(fgraph: FunctionGraph, diagonal: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Find products with columns, rows and numbers, and the factors; first the matrix itself."""
    yield diagonal, []
    for client, _ in clients_of(fgraph, diagonal):
        if isinstance(scalar_op(client.outputs[0]), Mul):
            factors = [one for one in client.inputs if one is not diagonal]
            if len(factors) == len(client.inputs) - 1 and all(long_axes(f) < 2 for f in factors):
                yield client.outputs[0], factors


def _sums(fgraph: FunctionGraph, term: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Find sums of a matrix with others of full size, and the other summands."""
    for client, _ in clients_of(fgraph, term):
        if isinstance(scalar_op(client.outputs[0]), Add):
            others = [one for one in client.inputs if one is not term]
            if len(others) == len(client.inputs) - 1 and any(map(is_real_matrix, others)):
                yield client.outputs[0], others
