"""The gradient by a block, from the parts of operands that belong to the block.

PyTensor computes the gradient by a block-diagonal matrix as a whole and takes the blocks on its
diagonal. Sums and elementwise products of outer products, matrix products and inverses need only
their parts for a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.graph.basic import Constant
from pytensor.scalar.basic import Sub
from pytensor.tensor.basic import ARange
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.decomposition.lu import LUFactor
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.core import SolveBase
from pytensor.tensor.linalg.summary import Det
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Shape, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pytensor_fuse._linalg.structure.blocks import (
    blocks_of,
    has_shape_of,
    inverses_of,
    made_of,
    split_by,
)
from pytensor_fuse._linalg.structure.free_factors import is_free_factor, is_inverse, scales_of
from pytensor_fuse._linalg.structure.matrices import core_of, same, scalar_op, transpose_of
from pytensor_fuse._pytensor.ops.versions_of_ops import is_join, join_operands

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# They raise an exception, or return NaN, for a matrix with a block that is not square.
_SQUARE_ONLY = (MatrixInverse, Det, SolveBase, Cholesky, LUFactor)

# The depth of sums and products that is searched.
_DEPTH = 12


class Block(NamedTuple):
    """A block of a block-diagonal matrix.

    Attributes
    ----------
    matrices
        All blocks on the diagonal.
    at
        The place of the block among them.
    fgraph
        The graph.
    """

    matrices: list[Any]
    at: int
    fgraph: FunctionGraph

    def turned(self) -> Block:
        """Return the same block of the transpose."""
        return self._replace(matrices=[one.T for one in self.matrices])


def block_of_gradient(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Take the block of each term of a sum or product, instead of a block of the whole."""
    block = _block_taken(fgraph, node)
    if block is None or not _are_square(block):
        return None
    whole = node.inputs[0]
    # Any other use needs the whole matrix.
    if not all(
        client.outputs and _block_taken(fgraph, client) for client, _ in fgraph.clients[whole]
    ):
        return None
    new = _part(whole, block, _DEPTH)
    return None if new is None else [new]


def _block_taken(fgraph: FunctionGraph, node: Apply[Any]) -> Block | None:
    """Return the block that a node takes, as the gradient of a block-diagonal matrix does."""
    if not isinstance(node.op, AdvancedSubtensor) or len(node.inputs) != 3:
        return None
    if tuple(getattr(node.op, "idx_list", ())) != (0, 1) or node.inputs[0].type.ndim != 2:
        return None
    _, down, across = node.inputs
    rows, columns = _range(down, (0, "x"), 0), _range(across, ("x", 0), 1)
    if rows is None or columns is None or rows[1] != columns[1] or not same(rows[0], columns[0]):
        return None
    matrices = _whose_shapes(rows[0])
    at = rows[1]
    if matrices is None or not 0 <= at < len(matrices):
        return None
    return Block(matrices, at, fgraph)


def _range(index: Any, order: tuple[Any, ...], axis: int) -> tuple[Any, int] | None:
    """Return the table of shapes, and its row, that give the first and last place of an index."""
    node = index.owner
    if node is None or not isinstance(node.op, DimShuffle) or tuple(node.op.new_order) != order:
        return None
    counted = node.inputs[0].owner
    if counted is None or not isinstance(core_of(counted), ARange):
        return None
    start, stop, step = counted.inputs
    if not isinstance(step, Constant) or step.data != 1:
        return None
    first, last = _element(start), _element(stop)
    if first is None or last is None or first[1:] != last[1:] or first[2] != axis:
        return None
    ends = last[0]
    op = None if ends.owner is None else ends.owner.op
    if not isinstance(op, CumOp) or op.axis != 0 or op.mode != "add":
        return None
    [table] = ends.owner.inputs
    begins = first[0]
    if not isinstance(scalar_op(begins), Sub):
        return None
    if not (same(begins.owner.inputs[0], ends) and same(begins.owner.inputs[1], table)):
        return None
    return table, first[1]


def _element(variable: Any) -> tuple[Any, int, int] | None:
    """Return the matrix, the row and the column of an element; None for other variables."""
    node = variable.owner
    if node is None or not isinstance(node.op, Subtensor) or variable.type.ndim:
        return None
    whole, *indices = node.inputs
    if whole.type.ndim != 2 or len(indices) != 2:
        return None
    if not all(isinstance(one, Constant) for one in indices):
        return None
    row, column = (int(one.data) for one in indices)
    return whole, row, column


def _whose_shapes(table: Any) -> list[Any] | None:
    """Return the matrices whose shapes are the rows of a table; None for other variables."""
    if table.owner is None or not is_join(table.owner):
        return None
    axis, rows = join_operands(table.owner)
    if axis != 0:
        return None
    found = []
    for row in rows:
        node = row.owner
        if node is None or not isinstance(node.op, DimShuffle):
            return None
        shape = node.inputs[0].owner
        if tuple(node.op.new_order) != ("x", 0) or shape is None:
            return None
        if not isinstance(shape.op, Shape) or shape.inputs[0].type.ndim != 2:
            return None
        found.append(shape.inputs[0])
    return found


def _part(variable: Any, block: Block, depth: int) -> Any:
    """Return the block of a matrix; None if the whole matrix is needed."""
    short = variable.type.broadcastable
    if short == (True, True):
        return variable
    if short == (False, True):
        return split_by(variable, block.matrices)[block.at]
    node = variable.owner
    if node is None or depth == 0:
        return None
    inner = transpose_of(variable)
    if inner is not None or short == (True, False):
        part = _part(variable.T if inner is None else inner, block.turned(), depth - 1)
        return None if part is None else part.T
    if isinstance(node.op, SpecifyShape):
        # The split checks the shape.
        return _part(node.inputs[0], block, depth - 1)
    if isinstance(core_of(node), Dot):
        left, right = node.inputs
        return _part_of_product(left, right, block, depth)
    if scalar_op(variable) is not None and len(node.outputs) == 1:
        parts = [_part(one, block, depth - 1) for one in node.inputs]
        return None if any(one is None for one in parts) else node.op(*parts)
    return _part_of_diagonal(variable, block)


def _part_of_product(left: Any, right: Any, block: Block, depth: int) -> Any:
    for one, other, turned in ((left, right, False), (right, left, True)):
        if is_free_factor(block.fgraph, one):
            return _scaled_part(one, other, block, depth, turned=turned)
    for one, other, turned in ((left, right, False), (right, left, True)):
        mine = _part_of_diagonal(one, block)
        theirs = None if mine is None else _part(other, block, depth - 1)
        if theirs is not None:
            return theirs @ mine if turned else mine @ theirs
    if is_inverse(left) or is_inverse(right):
        # PyTensor solves for the whole product without computing the inverse.
        return None
    return _part_of_rows(left, block) @ _part_of_rows(right.T, block.turned()).T


def _scaled_part(scaling: Any, matrix: Any, block: Block, depth: int, *, turned: bool) -> Any:
    """Return the block of a product with a diagonal matrix; None for a selection of rows."""
    scales = scales_of(block.fgraph, scaling)
    part = None if scales is None else _part(matrix, block, depth - 1)
    if part is None:
        return None
    if scales.type.ndim:
        scales = split_by(scales, block.matrices)[block.at]
        scales = scales[None, :] if turned else scales[:, None]
    return scales * part


def _part_of_diagonal(matrix: Any, block: Block) -> Any:
    """Return the block of a matrix with blocks of the same shapes; None for other matrices."""
    parts = blocks_of(matrix) or inverses_of(block.fgraph, matrix)
    if parts is None or len(parts) != len(block.matrices):
        return None
    pairs = zip(parts, block.matrices, strict=True)
    return parts[block.at] if all(has_shape_of(*pair) for pair in pairs) else None


def _part_of_rows(matrix: Any, block: Block) -> Any:
    return matrix if matrix.type.broadcastable[0] else split_by(matrix, block.matrices)[block.at]


def _are_square(block: Block) -> bool:
    """Whether all blocks are square, by their types, or because an op in the graph requires it."""
    shapes = [one.type.shape for one in block.matrices]
    if all(rows is not None and rows == columns for rows, columns in shapes):
        return True
    for node in block.fgraph.apply_nodes:
        if isinstance(core_of(node), _SQUARE_ONLY):
            parts = blocks_of(node.inputs[0])
            if parts is not None and len(parts) == len(block.matrices):
                pairs = zip(parts, block.matrices, strict=True)
                if all(same(made_of(one), made_of(other)) for one, other in pairs):
                    return True
    return False
