"""Work on a block-diagonal matrix by work on its blocks.

PyTensor does so for solves with blocks of known sizes, and for determinants, whose product
overflows. A square matrix with a block that is not square is singular: some block has more columns
than rows, hence linearly dependent columns. So the blocks of a matrix with a solution are square.

If the other matrix has blocks of the same sizes, the blocks are paired; its rows would be mostly
zeros.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.core import SolveBase
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.summary import det

from pytensor_fuse._linalg.rules.determinants import is_single_determinant, of_uses
from pytensor_fuse._linalg.structure.blocks import (
    blocks_of,
    has_shape_of,
    inverses_of,
    known_blocks,
    split_by,
)
from pytensor_fuse._linalg.structure.free_factors import is_work_to_do
from pytensor_fuse._linalg.structure.matrices import core_of
from pytensor_fuse._linalg.structure.outer_products import for_columns
from pytensor_fuse._pytensor.rewriting.assumptions import is_known_positive_definite

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# PyTensor's annotations allow for what these never return.
_det: Any = det


def block_diagonal_determinant(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Compute a determinant, its sign and its logarithm from those of the blocks."""
    blocks = known_blocks(fgraph, node.inputs[0]) if is_single_determinant(node) else None
    if blocks is None:
        return None
    determinants = [_det(one) for one in blocks]
    return of_uses(
        fgraph,
        node.outputs[0],
        lambda: pt.mul(*determinants),
        lambda: pt.mul(*(pt.sign(one) for one in determinants)),
        lambda: pt.add(*(pt.log(pt.abs(one)) for one in determinants)),
    )


def block_diagonal_solve(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve with each block for its rows of the right-hand side."""
    core = core_of(node)
    if not isinstance(core, SolveBase):
        return None
    matrix, right = node.inputs
    if right.type.ndim != core.b_ndim or right.type.numpy_dtype.kind != "f":
        return None
    blocks = known_blocks(fgraph, matrix)
    if blocks is None:
        return None
    # Assumptions on the matrix hold for its blocks, too.
    solve: Any = Blockwise(core)
    may_be_told = type(core) is Solve and core.assume_a in ("gen", "sym", "her")
    if may_be_told and is_known_positive_definite(fgraph, matrix):
        solve = Blockwise(Solve(assume_a="pos", lower=core.lower, b_ndim=core.b_ndim))
    if core.b_ndim == 1:
        return [_by_rows(solve, blocks, right)]
    new = _applied(fgraph, solve, blocks, right)
    return None if new is None else [new]


def product_with_block_diagonal_inverse(
    fgraph: FunctionGraph, node: Apply[Any]
) -> list[Any] | None:
    """Multiply the inverse of each block by its rows, or columns, of the other matrix."""
    left: Any
    right: Any
    left, right = node.inputs
    is_turned = inverses_of(fgraph, left) is None
    inverses = inverses_of(fgraph, right.T if is_turned else left)
    if inverses is None:
        return None
    other = left.T if is_turned else right
    if _matching(fgraph, inverses, other) is None and not is_work_to_do(fgraph, node, other):
        return None
    new = _applied(fgraph, pt.matmul, inverses, other)
    if new is None:
        return None
    return [new.T if is_turned else new]


def _applied(fgraph: FunctionGraph, apply: Any, blocks: list[Any], right: Any) -> Any:
    """Return a linear function of a block-diagonal matrix and another, by blocks, or None.

    Parameters
    ----------
    fgraph
        The graph.
    apply
        The function of one block and a matrix.
    blocks, right
        The blocks, and the other matrix.
    """
    theirs = _matching(fgraph, blocks, right)
    if theirs is not None:
        return pt.linalg.block_diag(*map(apply, blocks, theirs))
    return for_columns(right, partial(_by_rows, apply, blocks))


def _matching(fgraph: FunctionGraph, blocks: list[Any], right: Any) -> list[Any] | None:
    """Return the blocks of a matrix, if each is known to match one of ``blocks``."""
    theirs = blocks_of(right) or inverses_of(fgraph, right)
    if theirs is None or len(theirs) != len(blocks):
        return None
    return theirs if all(map(has_shape_of, theirs, blocks)) else None


def block_diagonal_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Invert each block."""
    inverses = inverses_of(fgraph, node.outputs[0]) if node.outputs else None
    if inverses is None or type(core_of(node)) is not MatrixInverse:
        return None
    return [pt.linalg.block_diag(*inverses)]


def _by_rows(apply: Any, blocks: list[Any], right: Any) -> Any:
    """Return the function of each block and its rows of a matrix, or its part of a vector."""
    return pt.concatenate(list(map(apply, blocks, split_by(right, blocks))), axis=0)
