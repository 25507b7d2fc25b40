"""The section about matrices: its findings, as text and as HTML."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor_fuse._audit.sections.matrices.record import (
    Factorization,
    InverseProduct,
    MatrixWork,
    SharedMatrix,
    UnknownWork,
    number,
    places,
    some_of,
)
from pytensor_fuse._reports.tables import paragraphs, table
from pytensor_fuse._reports.text import bounded, count

if TYPE_CHECKING:
    from collections.abc import Sequence


_ALL_WORK = "all work on matrices"


@dataclass(frozen=True, eq=False)
class MatricesSection:
    """The findings about work on matrices.

    Products of sparse matrices are left out: their work depends on the number of stored elements.

    Attributes
    ----------
    work
        The nodes that work on matrices, in the order in which they run; those of an inner graph
        at the position of its node.
    matrices
        The matrices that several nodes factorize or solve with. Equal values are the same matrix,
        wherever and however often they are computed; transposes, copies, checks, kernels and work
        in place are seen through. A triangular solve uses one triangle, which is distinct from the
        other one and from the whole.
    factorizations
        The nodes that could share a factorization.
    repeated
        Groups of nodes that compute the same values, or multiply the same matrices.
    inverse_products
        Products with an inverse.
    unknown
        Nodes that may or may not work on matrices.
    """

    work: tuple[MatrixWork, ...]
    matrices: tuple[SharedMatrix, ...]
    factorizations: tuple[Factorization, ...]
    repeated: tuple[tuple[MatrixWork, ...], ...]
    inverse_products: tuple[InverseProduct, ...]
    unknown: tuple[UnknownWork, ...]

    @property
    def counts(self) -> dict[str, int]:
        """The number of nodes with cubic work, by the class of op."""
        return dict(sorted(Counter(work.op for work in self.work if work.order == 3).items()))

    def to_dict(self) -> dict[str, Any]:
        """Return the findings in plain types, as in JSON."""
        return {
            "counts": self.counts,
            "work": [work.to_dict() for work in self.work],
            "matrices": [matrix.to_dict() for matrix in self.matrices],
            "factorizations": [shared.to_dict() for shared in self.factorizations],
            "repeated": [places(group) for group in self.repeated],
            "inverse_products": [product.to_dict() for product in self.inverse_products],
            "unknown": [op.to_dict() for op in self.unknown],
        }

    def lines(self) -> list[str]:
        """Return the lines of the text; their number is bounded."""
        text = [self._summary()]
        for title, those in (*self._findings(), (_ALL_WORK, self.work)):
            if those:
                text.append(f"{title}:")
                text += [f"  {line}" for line in bounded(those, str, "of these")]
        return text

    def html(self) -> str:
        """Return the body of the section."""
        parts = [paragraphs([self._summary()])]
        for title, those in self._findings():
            if those:
                parts += [f"<h3>{title.capitalize()}</h3>", paragraphs([str(one) for one in those])]
        if self.work:
            rows = [(one.place, one.size, number(one.batch), number(one.runs)) for one in self.work]
            parts.append(f"<h3>{_ALL_WORK.capitalize()}</h3>")
            parts.append(table(("node", "size", "batch", "runs"), rows, numbers=(1, 2, 3)))
        return "".join(parts)

    def _summary(self) -> str:
        """Count the work, by the op that does it."""
        counts = self.counts
        by_op = ", ".join(f"{n:,} {op}" for op, n in counts.items())
        text = count(sum(counts.values()), "cubic operation") + (f": {by_op}" if by_op else "")
        n_solves = sum(work.order < 3 for work in self.work)
        if n_solves:
            text += f"; {count(n_solves, 'solve')} of a single right-hand side"
        return text

    def _findings(self) -> list[tuple[str, Sequence[object]]]:
        """Return the findings about the work, with a title for each kind; some may be empty."""
        return [
            ("could share", self.factorizations),
            ("computed more than once", [some_of(group) for group in self.repeated]),
            ("could be a solve", self.inverse_products),
            ("the same at each step of a loop", [work for work in self.work if work.invariant]),
            ("may be work on matrices or not", self.unknown),
            ("the same matrix", self.matrices),
        ]
