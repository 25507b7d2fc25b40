"""Work on a positive definite Toeplitz matrix by its first row.

Levinson's recursion takes ``O(n^2)`` for determinants and solves with few right-hand sides. If
other work needs a factorization of the whole matrix, that serves everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Abs, Sub
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.summary import Det
from pytensor.tensor.math import Dot
from pytensor.tensor.subtensor import AdvancedSubtensor

from pytensor_fuse._linalg.ops.toeplitz import ToeplitzSolve
from pytensor_fuse._linalg.rules.determinants import of_positive_definite
from pytensor_fuse._linalg.structure.clients import clients_of, is_output, views_of
from pytensor_fuse._linalg.structure.matrices import (
    core_of,
    counts_from_zero,
    same,
    scalar_op,
    transpose_of,
    vector_of,
)
from pytensor_fuse._linalg.structure.outer_products import outer_product
from pytensor_fuse._pytensor.rewriting.assumptions import (
    is_known_positive_definite,
    without_assumptions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# With more right-hand sides, LAPACK's blocks are faster than the recursion by vectors.
_MOST_COLUMNS: Final = 8

_KINDS: Final = frozenset({"gen", "sym", "her", "pos"})

_SOLVE: Final[Any] = Blockwise(ToeplitzSolve())


def first_row(matrix: Any) -> Any:
    """Return the first row of a symmetric Toeplitz matrix ``row[abs(i[:, None] - i[None, :])]``.

    Parameters
    ----------
    matrix
        Any matrix. For others, and if `i` is not 0, 1, 2 and so on, the result is None.
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
    """Return the elements of a vector at places, checked to exist also if it becomes a slice."""
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
    work = _Work(fgraph)
    for view in views_of(fgraph, root, _viewed):
        for client, at in clients_of(fgraph, view):
            if at == 0 and not work.add(client):
                return None
    return work.replacements(row)


class _Work:
    """The work on a matrix that one op replaces.

    Parameters
    ----------
    fgraph
        The graph.
    """

    def __init__(self, fgraph: FunctionGraph) -> None:
        self._fgraph = fgraph
        self._determinants: list[Any] = []
        # Solutions, their right-hand sides, and functions from the new solution to the old.
        self._solved: list[tuple[Any, Any, Callable[[Any], Any]]] = []

    def add(self, client: Apply[Any]) -> bool:
        """Add a node that reads the matrix, and return whether it needs no factorization of it."""
        core = core_of(client)
        [old, *_] = client.outputs
        match core:
            case Det():
                self._determinants.append(old)
                return True
            case Solve(b_ndim=b_ndim, assume_a=kind):
                right = client.inputs[1]
                is_single = kind in _KINDS and right.type.ndim == b_ndim
                return is_single and self._add_solve(old, right, turned=False)
            case MatrixInverse():
                return self._add_products(old)
        # Other work on it, or on a stack of it, may factorize it.
        return old.type.ndim <= 2 and (
            not isinstance(client.op, Blockwise) or isinstance(core, Dot)
        )

    def _add_products(self, inverse: Any) -> bool:
        views = views_of(self._fgraph, inverse, _viewed)
        for view in views:
            if is_output(self._fgraph, view):
                return False
            for client, at in clients_of(self._fgraph, view):
                [old, *_] = client.outputs
                if old in views:
                    continue
                if not isinstance(core_of(client), Dot) or old.type.ndim != 2:
                    return False
                other: Any = client.inputs[1 - at]
                if other in views or not self._add_solve(
                    old, other if at == 0 else other.T, turned=at == 1
                ):
                    return False
        return True

    def _add_solve(self, old: Any, right: Any, *, turned: bool) -> bool:
        """Add a vector or few columns; return False for more columns."""
        if right.type.dtype != "float64":
            return False
        columns = right

        def finish(solution: Any) -> Any:
            return solution.T if turned else solution

        if right.type.ndim == 1:
            columns = right[:, None]

            def finish(solution: Any) -> Any:
                return solution[:, 0]

        elif right.type.shape[1] is None or right.type.shape[1] > _MOST_COLUMNS:
            outer = outer_product(right)
            if outer is None or outer.column.type.broadcastable != (False, True):
                return False
            columns = outer.column

            def finish(solution: Any) -> Any:
                result = solution * outer.row
                return result.T if turned else result

        self._solved.append((old, columns, finish))
        return True

    def replacements(self, row: Any) -> dict[Any, Any]:
        """Return the replacements; none if a right-hand side depends on another solution."""
        rights = [right for _, right, _ in self._solved]
        done = {*self._determinants, *(old for old, _, _ in self._solved)}
        if not done or not done.isdisjoint(ancestors(rights)):
            return {}
        # Most are equal; one op solves for all that differ.
        distinct = [
            one for i, one in enumerate(rights) if not any(same(one, two) for two in rights[:i])
        ]
        widths = [one.type.shape[1] for one in distinct]
        if sum(widths) > _MOST_COLUMNS:
            return {}
        none = pt.zeros((row.shape[0], 0), dtype="float64")
        joined = distinct[0] if len(distinct) == 1 else pt.concatenate([none, *distinct], axis=1)
        solution, pivots = _SOLVE(row, joined)
        found: dict[Any, Any] = {}
        for old, right, finish in self._solved:
            at = next(i for i, one in enumerate(distinct) if same(one, right))
            start = sum(widths[:at])
            found[old] = finish(solution[:, start : start + widths[at]])
        for old in self._determinants:
            found.update(
                of_positive_definite(
                    self._fgraph, old, lambda: pt.prod(pivots), lambda: pt.log(pivots).sum()
                )
            )
        return found


def _viewed(variable: Any) -> Any:
    """Return the matrix behind a transposition or an assumption; None for other variables."""
    if variable.type.ndim != 2:
        return None
    inner = transpose_of(variable)
    return without_assumptions(variable) if inner is None else inner
