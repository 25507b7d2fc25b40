"""Work on a positive definite Toeplitz matrix is done on its first row.

Where all of it is determinants, and solves with few right-hand sides, the recursions of Durbin and
Levinson take ``O(n^2)``. What needs the inverse entry by entry needs a factorization of the whole,
which then serves everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.scalar.basic import Abs, Sub
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.summary import Det
from pytensor.tensor.math import Dot
from pytensor.tensor.subtensor import AdvancedSubtensor

from pytensor_fuse._linalg.determinants import of_positive_definite
from pytensor_fuse._linalg.matrices import (
    core_of,
    counts_from_zero,
    outer_product,
    same,
    scalar_op,
    transpose_of,
    vector_of,
)
from pytensor_fuse._linalg.ops.toeplitz import ToeplitzPivots, ToeplitzSolve
from pytensor_fuse._linalg.outer_columns import for_columns
from pytensor_fuse._pytensor.assumptions import is_known_positive_definite, without_assumptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# With more right-hand sides, LAPACK's blocks are faster than the recursion by vectors.
_MOST_COLUMNS: Final = 8

_KINDS: Final = frozenset({"gen", "sym", "her", "pos"})

_PIVOTS: Final[Any] = Blockwise(ToeplitzPivots())
_SOLVE: Final[Any] = Blockwise(ToeplitzSolve())


def first_row(matrix: Any) -> Any:
    """Return the first row of a symmetric Toeplitz matrix ``row[abs(i[:, None] - i[None, :])]``.

    Parameters
    ----------
    matrix
        Any matrix. Where `i` does not count 0, 1, 2 and so on, and for any other, it is None.
    """
    node = matrix.owner
    if node is None or not isinstance(node.op, AdvancedSubtensor) or len(node.inputs) != 2:
        return None
    row, index = node.inputs
    if row.type.ndim != 1 or index.type.ndim != 2 or tuple(node.op.idx_list) != (0,):
        return None
    if isinstance(index, Constant):
        places = np.arange(index.data.shape[1])
        is_it = np.array_equal(index.data, np.abs(places[:, None] - places))
        return _taken(row, pt.constant(places)) if is_it else None
    if not isinstance(scalar_op(index), Abs):
        return None
    [difference] = index.owner.inputs
    if not isinstance(scalar_op(difference), Sub):
        return None
    first, second = difference.owner.inputs
    down, across = (
        (first, second) if second.type.broadcastable == (True, False) else (second, first)
    )
    if down.type.broadcastable != (False, True) or across.type.broadcastable != (True, False):
        return None
    places, others = vector_of(across), vector_of(down)
    if not counts_from_zero(places) or not same(places, others) or places.type.ndim != 1:
        return None
    return _taken(row, places)


def _taken(row: Any, places: Any) -> Any:
    """Return the elements of a vector at places, checked to be there, also once it is a slice."""
    known = places.type.shape[0]
    return pt.specify_shape(row[places], (places.shape[0] if known is None else known,))


def work_on_toeplitz_matrix(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Replace solves with, and determinants of, a Toeplitz matrix said to be positive definite."""
    if type(core_of(node)) not in (Solve, Det, MatrixInverse):
        return None
    [root, *_] = node.inputs
    if root.type.ndim != 2 or root.type.dtype != "float64":
        return None
    is_definite = False
    while True:
        is_definite = is_definite or is_known_positive_definite(fgraph, root)
        inner = _viewed(root)
        if inner is None:
            break
        root = inner
    row = first_row(root) if is_definite else None
    if row is None:
        return None
    replacements: dict[Any, Any] = {}
    for view in _views(fgraph, root):
        for client, at in fgraph.clients[view]:
            if client.outputs and at == 0 and not _add(fgraph, replacements, row, client):
                return None
    if not replacements:
        return None
    for old, new in replacements.items():
        if new.type.dtype != old.type.dtype or new.type.ndim != old.type.ndim:
            return None
        copy_stack_trace(old, new)
    place = {one: i for i, one in enumerate(fgraph.toposort())}
    return dict(sorted(replacements.items(), key=lambda pair: -place[pair[0].owner]))


def _add(fgraph: FunctionGraph, found: dict[Any, Any], row: Any, client: Apply[Any]) -> bool:
    """Add what takes the place of work on the matrix; whether none is left that factorizes it."""
    core = core_of(client)
    [old, *_] = client.outputs
    match core:
        case Det():
            pivots: Any = _PIVOTS(row)
            logarithm = pt.log(pivots).sum()
            found.update(of_positive_definite(fgraph, old, pt.prod(pivots), logarithm))
            return True
        case Solve(b_ndim=b_ndim, assume_a=kind):
            right = client.inputs[1]
            new = _solved(row, right) if kind in _KINDS and right.type.ndim == b_ndim else None
            found[old] = new
            return new is not None
        case MatrixInverse():
            return _add_products(fgraph, found, row, old)
    # What else works on it, or on a stack that it is in, may factorize it.
    return old.type.ndim <= 2 and (not isinstance(client.op, Blockwise) or isinstance(core, Dot))


def _add_products(fgraph: FunctionGraph, found: dict[Any, Any], row: Any, inverse: Any) -> bool:
    views = list(_views(fgraph, inverse))
    for view in views:
        for client, at in fgraph.clients[view]:
            if not client.outputs:
                return False
            [old, *_] = client.outputs
            if old in views:
                continue
            if not isinstance(core_of(client), Dot) or old.type.ndim != 2:
                return False
            other: Any = client.inputs[1 - at]
            new = None if other in views else _solved(row, other if at == 0 else other.T)
            if new is None:
                return False
            found[old] = new if at == 0 else new.T
    return True


def _solved(row: Any, right: Any) -> Any:
    """Return the solution for a vector or few columns; None if there may be more of them."""
    if right.type.dtype != row.type.dtype:
        return None
    if right.type.ndim == 1:
        return _SOLVE(row, right[:, None])[:, 0]
    columns = right.type.shape[1]
    if columns is not None and columns <= _MOST_COLUMNS:
        return _SOLVE(row, right)
    if outer_product(right) is None:
        return None
    return for_columns(right, lambda column: _SOLVE(row, column))


def _views(fgraph: FunctionGraph, matrix: Any) -> Iterator[Any]:
    """Find a symmetric matrix in a graph, also where it is transposed or more is said of it."""
    yield matrix
    for client, _ in fgraph.clients[matrix]:
        if client.outputs and _viewed(client.outputs[0]) is matrix:
            yield from _views(fgraph, client.outputs[0])


def _viewed(variable: Any) -> Any:
    """Return the matrix of which a variable is a transpose, or of which it says something."""
    inner = transpose_of(variable)
    inner = without_assumptions(variable) if inner is None else inner
    return inner if inner is not None and inner.type.ndim == variable.type.ndim == 2 else None
