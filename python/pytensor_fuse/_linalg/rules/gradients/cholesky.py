"""The gradient of a Cholesky factorization in closed form, for known forms of the cotangent.

With ``A = L L'`` and ``E`` the gradient by ``L``, PyTensor computes ``S = L^-T P L^-1``, where
``P`` is the lower triangle of ``L' E`` with half the diagonal, and returns the lower triangle of
``S + S'`` less the diagonal of ``S``. That is a product and two solves with ``n`` columns.

Only ``G = S + S' = L^-T C L^-1`` matters, with ``C = P + P'``. As ``L'`` is upper triangular, the
lower triangle of ``L' E`` is that of ``L'`` times the lower triangle of ``E``, so a mask of this
triangle of ``E`` does not matter. ``C`` is linear in ``E``, and the solves for these terms are
known:

- ``E = diag(c / diag(L))``, of ``c log det L``: ``C = c I``, so ``G = c A^-1``.
- ``E = w z'`` where ``L' w = c z``, of ``(c / 2) z' z``, ``z = L^-1 y``: ``L' E = c z z'``, so
  ``G = c v v'`` where ``L' v = z``.
- ``E = W' Z`` where ``L' w_i = c_i z_i`` for each row: ``L' E`` is a sum of such terms, and so is
  ``G``, which solves ``L' G = Z' W``.
- ``E = H L`` with ``H`` symmetric, of a function of ``L L'``: ``C = L' H L``, so ``G = H``.

With any other term, the rule does nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import Add, Mul, Neg, Reciprocal, Sub, TrueDiv
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.subtensor import AdvancedIncSubtensor, IncSubtensor

from pytensor_fuse._linalg.costs import length, solve_cost
from pytensor_fuse._linalg.structure.diagonal import placed_diagonal, whose_diagonal
from pytensor_fuse._linalg.structure.matrices import (
    as_scalar,
    core_of,
    counts_from_zero,
    is_real_matrix,
    is_zero,
    long_axes,
    multiple_of,
    rows_of,
    same,
    scalar_op,
    sum_of,
    summands_of,
    transpose_of,
    vector_of,
    without_expansion,
)
from pytensor_fuse._linalg.structure.signs import number_of
from pytensor_fuse._linalg.structure.symmetry import are_mirrored
from pytensor_fuse._linalg.structure.triangles.masks import is_triangle
from pytensor_fuse._linalg.structure.triangles.triangular import Triangle, triangle_of

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

_WRITES = (IncSubtensor, AdvancedIncSubtensor)


def cholesky_gradient(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Replace ``S = L^-T P L^-1`` by half of ``S + S'``, if only this sum is used."""
    factor = _solved_with(fgraph, node)
    if factor is None or not is_real_matrix(factor):
        return None
    [solution] = node.outputs
    transposed_half = node.inputs[1]
    inner = transpose_of(transposed_half)
    if inner is None or inner.owner is None or len(fgraph.clients[transposed_half]) != 1:
        return None
    inner_factor = _solved_with(fgraph, inner.owner)
    if inner_factor is None or not same(inner_factor, factor) or len(fgraph.clients[inner]) != 1:
        return None
    gradient = _gradient_in(inner.owner.inputs[1], factor)
    if gradient is None or not _only_symmetrized(fgraph, solution):
        return None
    symmetric = _Terms(fgraph, factor).of(gradient)
    if symmetric is None:
        return None
    return [0.5 * symmetric]


def _solved_with(fgraph: FunctionGraph, node: Apply[Any]) -> Any:
    """Return the factor ``L`` of a solve with ``L'``, if it is lower triangular by its form.

    PyTensor replaces the factor of ``L L'`` by ``L``, which may then be any expression.
    """
    core = core_of(node)
    if type(core) is not SolveTriangular or core.lower or core.unit_diagonal:
        return None
    factor = transpose_of(node.inputs[0], expanded=True)
    if factor is None or not triangle_of(fgraph, factor) & Triangle.LOWER:
        return None
    return factor


def _gradient_in(turned: Any, factor: Any) -> Any:
    """Return ``E`` of ``P'``, the transposed lower triangle of ``L' E`` with half the diagonal."""
    if not isinstance(scalar_op(turned), Sub):
        return None
    masked, diagonal = turned.owner.inputs
    if not isinstance(scalar_op(masked), Mul) or len(masked.owner.inputs) != 2:
        return None
    product, mask = masked.owner.inputs
    if is_triangle(product, lower=False):
        product, mask = mask, product
    product = transpose_of(product)
    if product is None or not is_triangle(mask, lower=False):
        return None
    if not _is_half_diagonal(diagonal, product):
        return None
    if not isinstance(core_of(product.owner), Dot):
        return _diagonal_in(product, factor)
    left, right = product.owner.inputs
    of = transpose_of(left)
    return right if of is not None and same(of, factor) else None


def _diagonal_in(product: Any, factor: Any) -> Any:
    """Return a diagonal ``E`` of ``L' E``: PyTensor multiplies the columns of ``L'``."""
    if not isinstance(scalar_op(product), Mul) or len(product.owner.inputs) != 2:
        return None
    turned, row = sorted(product.owner.inputs, key=long_axes, reverse=True)
    of = transpose_of(turned)
    if of is None or not same(of, factor) or row.type.broadcastable != (True, False):
        return None
    entries = vector_of(row)
    matrix = whose_diagonal(entries)
    return None if matrix is None or placed_diagonal(matrix) is None else matrix


def _is_half_diagonal(variable: Any, matrix: Any) -> bool:
    entries = placed_diagonal(variable)
    op = None if entries is None else scalar_op(entries)
    if not isinstance(op, Mul | TrueDiv) or len(entries.owner.inputs) != 2:
        return False
    half = 0.5 if isinstance(op, Mul) else 2.0
    parts = entries.owner.inputs
    pairs = (parts, parts[::-1]) if isinstance(op, Mul) else (parts,)
    return any(number_of(b) == half and _is_diagonal_of(a, matrix) for a, b in pairs)


def _is_diagonal_of(vector: Any, matrix: Any) -> bool:
    found = whose_diagonal(vector)
    return found is not None and same(found, matrix)


def _only_symmetrized(fgraph: FunctionGraph, solution: Any) -> bool:
    """Whether only ``S + S'`` and the diagonal of ``S`` are used."""
    turned: Any = None
    sums: list[Apply[Any]] = []
    for client, _ in fgraph.clients[solution]:
        if isinstance(client.op, str) or not getattr(client, "outputs", None):
            return False
        if _is_diagonal_of(client.outputs[0], solution):
            continue
        if transpose_of(client.outputs[0]) is solution:
            if turned is not None:
                return False
            turned = client.outputs[0]
        elif isinstance(scalar_op(client.outputs[0]), Add):
            sums.append(client)
        else:
            return False
    if turned is None:
        return False
    sums.extend(client for client, _ in fgraph.clients[turned])
    return all(
        isinstance(getattr(client.op, "scalar_op", None), Add)
        and client.inputs.count(solution) == client.inputs.count(turned)
        for client in sums
    )


class _Terms:
    """Finds ``G`` of ``E``, term by term.

    Parameters
    ----------
    fgraph
        The graph that the factor is in.
    factor
        ``L``.
    """

    def __init__(self, fgraph: FunctionGraph, factor: Any) -> None:
        self._fgraph = fgraph
        self._factor = factor
        self._found: list[Any] = []
        # The terms of H, of E = H L.
        self._congruent: list[Any] = []
        self._log_determinant: list[Any] = []

    def of(self, gradient: Any) -> Any:
        """Return ``G``; None if a term is not known."""
        if not self._take(gradient) or not self._pair():
            return None
        if self._log_determinant:
            self._found.append(sum_of(self._log_determinant) * self._inverse())
        return sum_of(self._found) if self._found else None

    def _inverse(self) -> Any:
        """Return the inverse of ``L L'``."""
        factor = self._factor
        identity = pt.eye(rows_of(self._fgraph, factor), dtype=factor.type.dtype)
        return Blockwise(CholeskySolve(lower=True, b_ndim=2))(factor, identity)

    def _take(self, term: Any) -> bool:
        node = term.owner
        if node is None or term.type.ndim != 2:
            return False
        if isinstance(node.op, SpecifyShape):
            # With other lengths, the solves of every known term fail.
            return self._take(node.inputs[0])
        if isinstance(core_of(node), Dot):
            factors = _factors([term])
            if factors[1:]:
                return self._take_outer(factors)
            return self._take_sum_of_outer(factors) or self._take_congruent(term)
        if isinstance(node.op, IncSubtensor):
            return self._take_increment(node)
        if isinstance(node.op, AdvancedIncSubtensor):
            return self._take_entries(node)
        entries = placed_diagonal(term)
        if entries is not None:
            return self._take_diagonal(entries)
        written = transpose_of(term)
        if written is not None and isinstance(core_of(written.owner), _WRITES):
            # The gradient of an upper factor, transposed as PyTensor leaves it.
            turned = _pushed_transpose(written)
            return transpose_of(turned) is not written and self._take(turned)
        op = scalar_op(term)
        if isinstance(op, Add):
            return all(self._take(part) for part in node.inputs)
        if isinstance(op, Mul):
            # The upper triangle does not matter.
            rest = [one for part in node.inputs for one in _without_triangle(part)]
            if len(rest) == 1 and len(node.inputs) > 1:
                return self._take(rest[0])
            return self._take_outer(_factors(rest)) or self._take_sum_of_outer(rest)
        return False

    def _take_increment(self, node: Apply[Any]) -> bool:
        """Take the terms of ``M[:n, :n] + P``, where ``P`` fills ``M``, or ``M`` is zero."""
        whole, part = node.inputs[:2]
        if not _is_block_from_start(node):
            return False
        # All known terms have as many elements as the factor has rows.
        return self._take_onto(node, whole) and self._take(part)

    def _take_entries(self, node: Apply[Any]) -> bool:
        """Take the terms of ``M[range(n), range(n)] + d``."""
        whole, entries, *indices = node.inputs
        if len(indices) != 2 or tuple(getattr(node.op, "idx_list", ())) != (0, 1):
            return False
        if entries.type.ndim != 1 or not all(counts_from_zero(one) for one in indices):
            return False
        return self._take_onto(node, whole) and self._take_diagonal(entries)

    def _take_onto(self, node: Apply[Any], whole: Any) -> bool:
        return is_zero(whole) or (not node.op.set_instead_of_inc and self._take(whole))

    def _take_diagonal(self, entries: Any) -> bool:
        """Take ``diag(c / diag(L))``."""
        number = multiple_of(entries, self._reciprocal)
        if number is None:
            return False
        self._log_determinant.append(number)
        return True

    def _reciprocal(self, vector: Any) -> Any:
        """Return ``c``, if a vector is ``c / diag(L)``."""
        op = scalar_op(vector)
        if not isinstance(op, TrueDiv | Reciprocal):
            return None
        *over, under = vector.owner.inputs
        if any(map(long_axes, over)):
            return None
        divisor = multiple_of(under, self._diagonal)
        if divisor is None:
            return None
        return (as_scalar(over[0]) if over else 1.0) / divisor

    def _diagonal(self, vector: Any) -> Any:
        return 1.0 if _is_diagonal_of(vector, self._factor) else None

    def _take_outer(self, factors: list[Any]) -> bool:
        """Take ``w z'`` where ``L' w = c z``."""
        if any(long_axes(part) > 1 for part in factors):
            return False
        columns = [part for part in factors if not part.type.broadcastable[0]]
        rows = [part for part in factors if not part.type.broadcastable[1]]
        if len(columns) != 1 or len(rows) != 1:
            return False
        solved, known = vector_of(columns[0]), vector_of(rows[0])
        if not self._is_solution(solved):
            return False
        given = solved.owner.inputs[1]
        multiple = multiple_of(given, lambda one: 1.0 if same(one, known) else None)
        if multiple is None:
            return False
        for part in factors:
            if not long_axes(part):
                multiple = multiple * as_scalar(part)
        # The rank of `known` may be that of a stack of one vector.
        vector = known.dimshuffle([i for i, s in enumerate(known.type.broadcastable) if not s])
        solve: Any = Blockwise(SolveTriangular(lower=False, b_ndim=1))
        back = solve(self._factor.mT, vector)
        self._found.append(multiple * back[:, None] * back[None, :])
        return True

    def _is_solution(self, variable: Any) -> bool:
        """Whether a variable is a solution with the transposed factor."""
        core = core_of(variable.owner)
        if type(core) is not SolveTriangular or core.lower or core.unit_diagonal:
            return False
        of = transpose_of(variable.owner.inputs[0], expanded=True)
        return of is not None and same(without_expansion(of), self._factor)

    def _take_sum_of_outer(self, factors: list[Any]) -> bool:
        """Take ``W' Z``, and numbers, where ``L' w_i = c_i z_i`` for each row."""
        products = [part for part in factors if not all(part.type.broadcastable)]
        if len(products) != 1 or not isinstance(core_of(products[0].owner), Dot):
            return False
        left, right = products[0].owner.inputs
        if left.type.ndim != 2 or right.type.ndim != 2:
            return False
        found = self._solved_rows(left, right)
        if found is None:
            return False
        solved, weight = found
        multiple: Any = 1.0
        for part in factors:
            if part is not products[0]:
                multiple = multiple * as_scalar(part)
        n, k = length(right, 1, "n"), length(right, 0, "k")
        solve: Any = Blockwise(SolveTriangular(lower=False, b_ndim=2))
        if weight is not None and weight and np.isfinite(weight):
            symmetric = pt.dot(solved.T, solved) / weight
        elif solve_cost(1, n, k).is_at_most(solve_cost(1, n, n)):
            symmetric = pt.dot(solve(self._factor.mT, right.T), solved)
        else:
            symmetric = solve(self._factor.mT, pt.dot(right.T, solved))
        self._found.append(multiple * symmetric)
        return True

    def _solved_rows(self, left: Any, rows: Any) -> tuple[Any, float | None] | None:
        """Return ``W``, and ``c`` if it is one number that is known, for ``W' Z``."""
        turned = transpose_of(left)
        solved = left if turned is None else turned
        if not self._is_solution(solved):
            return None
        b_ndim, given = core_of(solved.owner).b_ndim, solved.owner.inputs[1]
        if b_ndim == 1 and turned is not None:
            known, axis = rows, 1
        elif b_ndim == 2 and turned is None:
            known, axis = transpose_of(rows), 0
        else:
            return None
        if known is None:
            return None
        weighted = _weight(given, known, axis)
        if weighted is None:
            return None
        [weight] = weighted
        return (solved if turned is not None else solved.mT), weight

    def _take_congruent(self, term: Any) -> bool:
        """Take ``H L``; the symmetry of ``H`` is checked when all terms are known."""
        left, right = term.owner.inputs
        if not same(right, self._factor):
            return False
        parts = list(summands_of(left))
        self._congruent.extend(parts if all(map(is_real_matrix, parts)) else [left])
        return True

    def _pair(self) -> bool:
        """Find the transpose of each term of ``H``."""
        pending = list(self._congruent)
        self._found.extend(pending)
        while pending:
            part = pending.pop()
            if are_mirrored(part, part):
                continue
            at = next((i for i, b in enumerate(pending) if are_mirrored(part, b)), None)
            if at is None:
                return False
            del pending[at]
        return True


def _is_block_from_start(node: Apply[Any]) -> bool:
    """Whether a node writes a matrix into the first rows and columns of another."""
    slices = getattr(node.op, "idx_list", ())
    return node.inputs[1].type.ndim == len(slices) == 2 and all(
        isinstance(one, slice) and one.start is None and one.step is None for one in slices
    )


def _pushed_transpose(matrix: Any) -> Any:
    """Return the transpose of a matrix, built from the transposes of its parts."""
    inner = transpose_of(matrix)
    if inner is not None:
        return inner
    node = matrix.owner
    if node is None or placed_diagonal(matrix) is not None:
        return matrix if node is not None else matrix.T
    core = core_of(node)
    if isinstance(core, Dot) and matrix.type.ndim == 2:
        left, right = node.inputs
        return pt.dot(_pushed_transpose(right), _pushed_transpose(left))
    if scalar_op(matrix) is not None and all(one.type.ndim == 2 for one in node.inputs):
        return node.op(*map(_pushed_transpose, node.inputs))
    if isinstance(core, IncSubtensor) and len(node.inputs) == 4 and _is_block_from_start(node):
        whole, part, *ends = node.inputs
        return node.op(_pushed_transpose(whole), _pushed_transpose(part), *reversed(ends))
    if isinstance(core, AdvancedIncSubtensor) and tuple(core.idx_list) == (0, 1):
        whole, entries, *indices = node.inputs
        return node.op(_pushed_transpose(whole), entries, *reversed(indices))
    return matrix.T


def _factors(parts: list[Any]) -> list[Any]:
    """Return the factors of an elementwise product; a column times a row is two."""
    factors: list[Any] = []
    for part in parts:
        node = part.owner
        is_outer = isinstance(core_of(node), Dot) and node.inputs[0].type.shape[-1] == 1
        factors.extend(node.inputs if is_outer else [part])
    return factors


def _without_triangle(part: Any) -> list[Any]:
    """Return a factor; for a mask of the lower triangle, its number if that is not 1."""
    if is_triangle(part, lower=True):
        return []
    if part.owner is not None and isinstance(part.owner.op, SpecifyShape):
        inner = part.owner.inputs[0]
        factors = inner.owner.inputs if isinstance(scalar_op(inner), Mul) else [inner]
        return [one for factor in factors for one in _without_triangle(factor)]
    if isinstance(part, Constant) and part.data.ndim == 2 and part.data.size:
        number = part.data[0, 0]
        if number and np.array_equal(part.data, number * np.tril(np.ones_like(part.data))):
            return [pt.constant(np.full((1, 1), number))]
    return [part]


def _weight(matrix: Any, known: Any, axis: int) -> tuple[float | None] | None:
    """Return the weight by which a matrix is multiplied, constant along an axis.

    Returns
    -------
    tuple of a number or None, or None
        The number, or None in the tuple if it is unknown or varies. None if the matrix is not such
        a multiple.
    """
    if same(matrix, known):
        return (1.0,)
    op = scalar_op(matrix)
    if not isinstance(op, Neg | Mul | TrueDiv) or matrix.type.ndim != 2:
        return None
    inputs = matrix.owner.inputs
    at = [i for i, one in enumerate(inputs) if not one.type.broadcastable[axis]]
    if len(at) != 1 or (isinstance(op, TrueDiv) and at != [0]):
        return None
    inner = _weight(inputs[at[0]], known, axis)
    if inner is None or isinstance(op, Neg):
        return inner if inner is None or inner[0] is None else (-inner[0],)
    [weight] = inner
    for i, one in enumerate(inputs):
        if i != at[0] and weight is not None:
            number = number_of(one)
            if number is None or (isinstance(op, TrueDiv) and not number):
                weight = None
            else:
                weight = weight * number if isinstance(op, Mul) else weight / number
    return (weight,)
