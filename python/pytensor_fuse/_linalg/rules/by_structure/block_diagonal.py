"""Work on a block-diagonal matrix is done on its blocks.

PyTensor does so for solves if the sizes of all blocks are known, and for determinants, whose
product overflows. A square matrix whose blocks are not square is singular: some block has more
columns than rows, and so columns that depend on each other. So the blocks of a matrix that is
solved with are square, or there is no solution.

Where the other matrix has blocks of the same sizes, the blocks are worked on in pairs: by rows,
most of what is read of it would be zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.core import SolveBase
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.summary import Det, det

from pytensor_fuse._linalg.rules.by_structure.outer_columns import for_columns
from pytensor_fuse._linalg.rules.determinants import of_uses
from pytensor_fuse._linalg.structure.free_factors import is_work_to_do
from pytensor_fuse._linalg.structure.matrices import (
    core_of,
    is_real_matrix,
    same,
    transpose_of,
)
from pytensor_fuse._pytensor.rewriting.assumptions import (
    is_known_positive_definite,
    said_positive_definite,
    without_assumptions,
)

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# PyTensor's annotations allow for what these never return.
_det: Any = det


def blocks_of(matrix: Any) -> list[Any] | None:
    """Return the blocks of a square matrix; None if it is not known to be block-diagonal.

    Blocks that are known not to be square do not count.
    """
    if not is_real_matrix(matrix):
        return None
    inner = transpose_of(matrix)
    if inner is not None and inner.type.ndim == 2:
        found = blocks_of(inner)
        return None if found is None else [_transposed(one) for one in found]
    node = matrix.owner
    if node is None or not isinstance(core_of(node), BlockDiagonal):
        return None
    blocks: list[Any] = []
    for one in node.inputs:
        rows, columns = one.type.shape
        if None not in (rows, columns) and rows != columns:
            return None
        blocks.extend(blocks_of(one) or [one])
    # A block of another dtype would be worked on with other precision.
    if any(one.type.dtype != matrix.type.dtype for one in blocks):
        return None
    return blocks


def _known_blocks(fgraph: FunctionGraph, matrix: Any) -> list[Any] | None:
    """Return the blocks of a matrix, which are positive definite if it is known to be."""
    blocks = blocks_of(matrix)
    if blocks is None or not is_known_positive_definite(fgraph, matrix):
        return blocks
    return [said_positive_definite(one) for one in blocks]


def _transposed(block: Any) -> Any:
    inner = transpose_of(block)
    return inner if inner is not None and inner.type.ndim == 2 else block.T


def block_diagonal_determinant(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Compute a determinant, its sign and its logarithm from those of the blocks."""
    if type(core_of(node)) is not Det or node.outputs[0].type.ndim:
        return None
    blocks = _known_blocks(fgraph, node.inputs[0])
    if blocks is None:
        return None
    determinants = [_det(one) for one in blocks]
    [old] = node.outputs
    found = of_uses(
        fgraph,
        old,
        lambda: pt.mul(*determinants),
        lambda: pt.mul(*(pt.sign(one) for one in determinants)),
        lambda: pt.add(*(pt.log(pt.abs(one)) for one in determinants)),
    )
    replacements: dict[Any, Any] = {}
    for before, after in found.items():
        replacements[before] = _as(before, after)
    return replacements


def block_diagonal_solve(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve with each block for its rows of the right-hand side."""
    core = core_of(node)
    if not isinstance(core, SolveBase):
        return None
    matrix, right = node.inputs
    if right.type.ndim != core.b_ndim or right.type.numpy_dtype.kind != "f":
        return None
    blocks = _known_blocks(fgraph, matrix)
    if blocks is None:
        return None
    # What is supposed of the matrix holds for its blocks, too.
    solve: Any = Blockwise(core)
    may_be_told = type(core) is Solve and core.assume_a in ("gen", "sym", "her")
    if may_be_told and is_known_positive_definite(fgraph, matrix):
        solve = Blockwise(Solve(assume_a="pos", lower=core.lower, b_ndim=core.b_ndim))
    if core.b_ndim == 1:
        return _by_blocks(node, [solve(a, b) for a, b in _with_rows(blocks, right)])
    new = _applied(fgraph, solve, blocks, right)
    return None if new is None else [_as(node.outputs[0], new)]


def product_with_block_diagonal_inverse(
    fgraph: FunctionGraph, node: Apply[Any]
) -> list[Any] | None:
    """Multiply the inverse of each block by its rows, or columns, of the other matrix."""
    left: Any
    right: Any
    left, right = node.inputs
    turned = inverses_of(fgraph, left) is None
    inverses = inverses_of(fgraph, right.T if turned else left)
    if inverses is None:
        return None
    other = left.T if turned else right
    if _matching(fgraph, inverses, other) is None and not is_work_to_do(fgraph, node, other):
        return None
    new = _applied(fgraph, pt.matmul, inverses, other)
    if new is None:
        return None
    return [_as(node.outputs[0], new.T if turned else new)]


def _applied(fgraph: FunctionGraph, apply: Any, blocks: list[Any], right: Any) -> Any:
    """Return what a block-diagonal matrix makes of another, by its blocks; None if not by them.

    Parameters
    ----------
    fgraph
        The graph.
    apply
        Returns what one block makes of a matrix.
    blocks, right
        The blocks, and the other matrix.
    """
    theirs = _matching(fgraph, blocks, right)
    if theirs is not None:
        return pt.linalg.block_diag(*map(apply, blocks, theirs))
    return for_columns(
        right, lambda b: pt.concatenate([apply(*pair) for pair in _with_rows(blocks, b)], axis=0)
    )


def _matching(fgraph: FunctionGraph, blocks: list[Any], right: Any) -> list[Any] | None:
    """Return the blocks of a matrix, if each is known to have as many rows as one of ``blocks``."""
    theirs = blocks_of(right) or inverses_of(fgraph, right)
    if theirs is None or len(theirs) != len(blocks):
        return None
    return theirs if all(map(has_shape_of, theirs, blocks)) else None


def block_diagonal_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Invert each block."""
    inverses = inverses_of(fgraph, node.outputs[0]) if node.outputs else None
    if inverses is None or type(core_of(node)) is not MatrixInverse:
        return None
    return [_as(node.outputs[0], pt.linalg.block_diag(*inverses))]


def inverses_of(fgraph: FunctionGraph, matrix: Any) -> list[Any] | None:
    """Return the blocks of a matrix that is the inverse of a block-diagonal one; None if not."""
    if not is_real_matrix(matrix):
        return None
    inner = transpose_of(matrix)
    if inner is not None and inner.type.ndim == 2:
        found = inverses_of(fgraph, inner)
        return None if found is None else [_transposed(one) for one in found]
    if type(core_of(matrix.owner)) is not MatrixInverse:
        return None
    blocks = _known_blocks(fgraph, matrix.owner.inputs[0])
    invert: Any = matrix.owner.op
    return None if blocks is None else [invert(one) for one in blocks]


def has_shape_of(part: Any, matrix: Any) -> bool:
    """Whether a square matrix is known to have the shape of another, by sizes or by its form."""
    known = part.type.shape
    if None not in known and known == matrix.type.shape:
        return True
    return same(made_of(part), made_of(matrix))


def made_of(matrix: Any) -> Any:
    """Return the matrix without inverses and transposes: of a square one all have its shape."""
    while True:
        inner, unsaid = transpose_of(matrix), without_assumptions(matrix)
        if inner is not None and inner.type.ndim == 2:
            matrix = inner
        elif type(core_of(matrix.owner)) is MatrixInverse:
            matrix = matrix.owner.inputs[0]
        elif unsaid is not None:
            matrix = unsaid
        else:
            return matrix


def _with_rows(blocks: list[Any], right: Any) -> list[tuple[Any, Any]]:
    """Return each block and its rows of a matrix, or its part of a vector."""
    return list(zip(blocks, split_by(right, blocks), strict=True))


def split_by(right: Any, blocks: list[Any]) -> list[Any]:
    """Return the parts of a vector or matrix, each with as many rows as a block has."""
    known = [one.type.shape[0] for one in blocks]
    if None in known:
        sizes: Any = pt.stack([one.shape[0] for one in blocks])
    else:
        sizes = pt.constant(known, dtype="int64")
    parts: list[Any] = pt.split(right, sizes, n_splits=len(blocks), axis=0)
    return parts


def _by_blocks(node: Apply[Any], parts: list[Any]) -> list[Any]:
    return [_as(node.outputs[0], pt.concatenate(parts, axis=0))]


def _as(old: Any, new: Any) -> Any:
    if new.type.dtype != old.type.dtype:
        new = new.astype(old.type.dtype)
    copy_stack_trace(old, new)
    return new
