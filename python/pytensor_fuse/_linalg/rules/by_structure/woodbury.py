"""Work on ``D + U U'`` by work on a matrix with as many rows as ``U`` has columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.scalar.basic import Mul
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve

from pytensor_fuse._linalg.costs import length, solve_cost, term
from pytensor_fuse._linalg.rules.determinants import is_single_determinant, of_positive_definite
from pytensor_fuse._linalg.structure.low_rank import LowRankUpdate, low_rank_update
from pytensor_fuse._linalg.structure.matrices import as_scalar, core_of, scalar_op, scaled_parts
from pytensor_fuse._linalg.structure.woodbury import Woodbury

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


def woodbury_solve(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve with ``D + U U'`` by Woodbury's identity."""
    core = core_of(node)
    if type(core) is not Solve or node.inputs[1].type.ndim != core.b_ndim:
        return None
    matrix, right = node.inputs
    update = _worth_it(matrix)
    if update is None or right.type.numpy_dtype.kind != "f":
        return None
    n, columns = update.size, 1 if core.b_ndim == 1 else length(right, 1, "k")
    before = term(n * n * n // 6) + solve_cost(1, n, columns)
    if not (update.cost() + update.cost_of_solve(columns)).is_at_most(before):
        return None
    # The value has a solve with y, and its gradient one with a multiple of y.
    right, numbers = _without_numbers(right)
    known = Woodbury(update)
    if core.b_ndim == 1:
        column = _column_of(right)
        solution = known.solved(right[:, None] if column is None else column)[:, 0]
    else:
        solution = known.solved(right)
    for number in numbers:
        solution = solution * number
    return [solution]


def _column_of(vector: Any) -> Any:
    """Return the matrix of one column behind a vector; None if there is none."""
    if vector.owner is None or not isinstance(vector.owner.op, DimShuffle):
        return None
    [column] = vector.owner.inputs
    is_column = column.type.broadcastable == (False, True)
    return column if is_column and tuple(vector.owner.op.new_order) == (0,) else None


def _without_numbers(right: Any) -> tuple[Any, list[Any]]:
    """Return the vector or matrix in a product with numbers, and these."""
    parts = scaled_parts(right) if isinstance(scalar_op(right), Mul) else None
    if parts is None or parts.whole.type.broadcastable != right.type.broadcastable:
        return right, []
    return parts.whole, [as_scalar(one) for one in parts.numbers]


def woodbury_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Invert ``D + U U'`` by Woodbury's identity if the elements of the inverse are used."""
    if type(core_of(node)) is not MatrixInverse:
        return None
    update = _worth_it(node.inputs[0])
    return None if update is None else [Woodbury(update).inverse()]


def determinant_lemma(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Compute the determinant of ``D + U U'``, and its logarithm, from a small one."""
    update = _worth_it(node.inputs[0]) if is_single_determinant(node) else None
    if update is None:
        return None
    known, [old] = Woodbury(update), node.outputs
    return of_positive_definite(fgraph, old, known.determinant, known.log_determinant)


def _worth_it(matrix: Any) -> LowRankUpdate | None:
    """Return the parts of ``D + U U'``, if the smaller matrix pays; else None."""
    update = low_rank_update(matrix)
    return update if update is not None and update.pays() else None
