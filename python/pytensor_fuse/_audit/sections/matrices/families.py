"""Families: the work on one matrix, on its factors and on its inverse.

A solve with a factor is work on the factorized matrix, and so is a product with its inverse.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.tensor.basic import ExtractDiag
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.decomposition.eigen import Eig, Eigh, Eigvalsh
from pytensor.tensor.linalg.decomposition.lu import LU, LUFactor
from pytensor.tensor.linalg.decomposition.qr import QR
from pytensor.tensor.linalg.decomposition.schur import QZ, Schur
from pytensor.tensor.linalg.decomposition.svd import SVD
from pytensor.tensor.linalg.inverse import MatrixInverse, MatrixPinv, TensorInv
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.lstsq import Lstsq, TensorSolve
from pytensor.tensor.linalg.summary import Det, SLogDet

from pytensor_fuse._audit.sections.matrices.kinds import FACTORS, PRODUCT, TRIANGULAR, core_of
from pytensor_fuse._linalg.ops.cholesky_inverse import CholeskyInverse
from pytensor_fuse._linalg.ops.lu_inverse import LUInverse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op

    from pytensor_fuse._audit.context.values import Values
    from pytensor_fuse._audit.sections.matrices.work import Found
    from pytensor_fuse._core import Term


class MatrixPurpose(Enum):
    """The purpose of a node. The value is a word for people."""

    FACTORIZATION = "factorized"
    SOLVE = "solve"
    INVERSE = "inverse"
    DETERMINANT = "determinant"
    PRODUCT = "product with its factor or inverse"
    OTHER = "other work"


_FACTORIZATIONS: tuple[type[Op], ...] = (Cholesky, LU, LUFactor, QR, Eig, Eigh, Schur, QZ, SVD)
_FROM_FACTORS: tuple[type[Op], ...] = (CholeskyInverse, LUInverse)
_INVERSES: tuple[type[Op], ...] = (MatrixInverse, MatrixPinv, TensorInv, *_FROM_FACTORS)

_PURPOSES: dict[type[Op], MatrixPurpose] = {
    **dict.fromkeys((*_FACTORIZATIONS, Eigvalsh), MatrixPurpose.FACTORIZATION),
    **dict.fromkeys((Solve, *TRIANGULAR, Lstsq, TensorSolve), MatrixPurpose.SOLVE),
    **dict.fromkeys(_INVERSES, MatrixPurpose.INVERSE),
    **dict.fromkeys((Det, SLogDet), MatrixPurpose.DETERMINANT),
}


class Member(NamedTuple):
    """A node of a family.

    Attributes
    ----------
    node
        The node.
    values
        The graph of the node.
    purpose
        The purpose of the node.
    found
        Its work; None for a node that only takes the diagonal of a factor.
    square
        For a product, the index of the operand that is the factor or the inverse.
    """

    node: Apply[Any]
    values: Values
    purpose: MatrixPurpose
    found: Found | None
    square: int | None = None


@dataclass(eq=False)
class Family:
    """Work on a matrix, its factors and its inverse.

    Attributes
    ----------
    matrix
        The matrix, transposes seen through.
    members
        The nodes, in the order in which they run.
    """

    matrix: Term
    members: list[Member] = field(default_factory=list)

    @property
    def is_cubic(self) -> bool:
        """Whether there is cubic work other than products."""
        return any(
            one.found is not None
            and one.purpose is not MatrixPurpose.PRODUCT
            and one.found.work.order == 3
            for one in self.members
        )


class Families:
    """The families of the work in a graph and its inner graphs.

    Parameters
    ----------
    found
        The work.
    values
        The value numbering of the graph.
    """

    def __init__(self, found: Sequence[Found], values: Values) -> None:
        self._found = {one.work.node: one for one in found}
        # By factor: the factorized matrix, and the node that factorizes it.
        self._factorized: dict[Term, tuple[Term, Apply[Any]]] = {}
        self._inverses: dict[Term, Term] = {}
        for one in found:
            self._know(one)
        self._by_matrix: dict[Term, Family] = {}
        for member, matrix in self._sort(values):
            self._by_matrix.setdefault(matrix, Family(matrix)).members.append(member)

    def __iter__(self) -> Iterator[Family]:
        return iter(self._by_matrix.values())

    def factorization_of(self, factor: Term) -> Apply[Any] | None:
        """Return the node that computes a factor, or None if no node does."""
        known = self._factorized.get(factor)
        return None if known is None else known[1]

    def root(self, matrix: Term) -> Term:
        """Return the matrix of which this is a factor, or else this matrix."""
        known = self._factorized.get(matrix)
        return matrix if known is None else known[0]

    def _know(self, one: Found) -> None:
        if one.matrix is None:
            return
        node = one.work.node
        class_ = type(core_of(node.op))
        if class_ in _FACTORIZATIONS:
            ndim = node.inputs[0].type.ndim
            for output in node.outputs:
                # Pivots and eigenvalues are vectors.
                if output.type.ndim == ndim:
                    factor = one.values.matrix(output).values
                    self._factorized.setdefault(factor, (one.matrix.values, node))
        elif class_ in _INVERSES:
            inverse = one.values.matrix(node.outputs[0]).values
            self._inverses.setdefault(inverse, self.root(one.matrix.values))

    def _sort(self, values: Values) -> Iterator[tuple[Member, Term]]:
        """Iterate over all members in the order of the run, each with the matrix of its family."""
        inner: dict[Apply[Any], list[Values]] = {}
        for node, graph in values.inner:
            inner.setdefault(node, []).append(graph)
        for node in values.context.order:
            yield from self._of_node(node, values)
            for graph in inner.get(node, ()):
                yield from self._sort(graph)

    def _of_node(self, node: Apply[Any], values: Values) -> Iterator[tuple[Member, Term]]:
        core = core_of(node.op)
        found = self._found.get(node)
        if isinstance(core, ExtractDiag):
            known = self._factorized.get(values.matrix(node.inputs[0]).values)
            if known is not None:
                yield Member(node, values, MatrixPurpose.DETERMINANT, None), known[0]
        elif found is None:
            return
        elif found.kind is PRODUCT:
            matrices = {}
            for side, at in enumerate(FACTORS[type(core)]):
                operand = values.matrix(node.inputs[at]).values
                matrix = self._inverses.get(operand)
                if matrix is None and operand in self._factorized:
                    matrix = self.root(operand)
                if matrix is not None:
                    matrices[matrix] = Member(node, values, MatrixPurpose.PRODUCT, found, side)
            for matrix, member in matrices.items():
                yield member, matrix
        elif found.matrix is not None:
            purpose = _PURPOSES.get(type(core), MatrixPurpose.OTHER)
            matrix = found.matrix.values
            # Factorizing a factor is work on a matrix of its own.
            if purpose is not MatrixPurpose.FACTORIZATION:
                matrix = self.root(matrix)
            yield Member(node, values, purpose, found), matrix
