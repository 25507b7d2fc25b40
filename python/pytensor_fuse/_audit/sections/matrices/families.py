"""Families: the work on one matrix, on its factors and on its inverse.

A solve with a factor is work on the factorized matrix, and so is a product with its inverse.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.tensor.basic import ExtractDiag

from pytensor_fuse._audit.sections.matrices.kinds import (
    FACTORS,
    PRODUCT,
    MatrixPurpose,
    core_of,
    purpose_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytensor.graph.basic import Apply

    from pytensor_fuse._audit.context.values import Values
    from pytensor_fuse._audit.sections.matrices.work import Found
    from pytensor_fuse._core import Term


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
    def work(self) -> list[Found]:
        """The work on the matrix other than products, which share its factors and its inverse."""
        return [
            one.found
            for one in self.members
            if one.found is not None and one.purpose is not MatrixPurpose.PRODUCT
        ]

    @property
    def is_cubic(self) -> bool:
        """Whether there is cubic work other than products."""
        return any(one.work.order == 3 for one in self.work)


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
        purpose = purpose_of(node.op)
        if purpose is MatrixPurpose.FACTORIZATION:
            ndim = node.inputs[0].type.ndim
            for output in node.outputs:
                # Pivots and eigenvalues are vectors.
                if output.type.ndim == ndim:
                    factor = one.values.matrix(output).values
                    self._factorized.setdefault(factor, (one.matrix.values, node))
        elif purpose is MatrixPurpose.INVERSE:
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
            purpose = purpose_of(node.op)
            matrix = found.matrix.values
            # Factorizing a factor is work on a matrix of its own.
            if purpose is not MatrixPurpose.FACTORIZATION:
                matrix = self.root(matrix)
            yield Member(node, values, purpose, found), matrix
