"""What an audit finds about work on matrices: the nodes that do it, and what they could share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor_fuse._reports.text import SHOWN_LINES, place

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._audit.context.lengths import Lengths
    from pytensor_fuse._audit.sections.matrices.reasons import LinalgReason


@dataclass(frozen=True, eq=False)
class MatrixWork:
    """A node that factorizes a matrix, solves with one or multiplies two.

    Attributes
    ----------
    node
        The node.
    name
        Its place in the order in which its graph runs, and ``op``.
    path
        The names of the nodes in whose inner graphs it is, the outermost first.
    op
        The class of the op that works on single matrices.
    order
        With which power of the lengths the work grows: 3, or 2 for a triangular or Cholesky solve
        of a single right-hand side.
    lengths
        Those that the work grows with, None where one is not known: of an m by n matrix (m, n), of
        a solve (n, number of right-hand sides), of a product of m by k and k by n (m, k, n).
    batch
        How many matrices it works on in turn; None if not known.
    runs
        How often it runs in a call of the function, in a branch at most; None if not known.
    invariant
        Whether it is in a loop, and computes the same at each step.
    """

    node: Apply[Any]
    name: str
    path: tuple[str, ...]
    op: str
    order: int
    lengths: Lengths
    batch: int | None
    runs: int | None
    invariant: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        names = ("name", "path", "op", "order", "lengths", "batch", "runs", "invariant")
        found = {name: getattr(self, name) for name in names}
        return {**found, "path": list(self.path), "lengths": list(self.lengths)}

    @property
    def place(self) -> str:
        """Its name, after those of the nodes in whose inner graphs it is."""
        return place(self.path, self.name)

    @property
    def size(self) -> str:
        """The lengths, in words."""
        return " x ".join("?" if n is None else str(n) for n in self.lengths)

    def __str__(self) -> str:
        text = f"{self.place} ({self.size})"
        if self.batch != 1:
            text += f", batch: {number(self.batch)}"
        if self.runs != 1:
            text += f", runs: {number(self.runs)}"
        if self.invariant:
            text += ", the same each time"
        return text


def number(n: int | None) -> str:
    """Return a number, if it is known, in words."""
    return "unknown" if n is None else f"{n:,}"


def some_of(work: Sequence[MatrixWork]) -> str:
    """Return where the first of some nodes are, and how many more there are."""
    shown = ", ".join(_places(work[:SHOWN_LINES]))
    return f"{shown} and {len(work) - SHOWN_LINES:,} more" if len(work) > SHOWN_LINES else shown


def _places(work: Iterable[MatrixWork]) -> list[str]:
    return [one.place for one in work]


@dataclass(frozen=True, eq=False)
class SharedMatrix:
    """A matrix that several nodes work on.

    Attributes
    ----------
    name
        The name of the variable, or of the node that computes it, where it is met first.
    variable
        That variable.
    part
        Which part of it counts: empty for all, or the triangle that is solved with.
    work
        The nodes that factorize the matrix or its transpose, or solve with it.
    """

    name: str
    variable: Variable[Any, Any]
    part: str
    work: tuple[MatrixWork, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {"name": self.name, "part": self.part, "work": _places(self.work)}

    def __str__(self) -> str:
        return f"{', '.join(filter(None, (self.name, self.part)))}: {some_of(self.work)}"


@dataclass(frozen=True, eq=False)
class Factorization:
    """One factorization that could take the place of several.

    Attributes
    ----------
    kind
        ``"Cholesky"``, ``"LU"``, ``"SVD"``, ``"symmetric eigenvalue"``, ``"QR"``, ``"eigenvalue"``
        or ``"Schur"``.
    matrix
        Of what.
    work
        The nodes that each factorize that matrix now, and could use the one.
    supposes
        A node among these that is right only if the matrix is what the factorization needs,
        positive definite or symmetric; None if any matrix will do.
    reason
        Why the rules of the feature `linalg` have not done it.
    """

    kind: str
    matrix: SharedMatrix
    work: tuple[MatrixWork, ...]
    supposes: MatrixWork | None
    reason: LinalgReason

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {
            "kind": self.kind,
            "matrix": self.matrix.name,
            "work": _places(self.work),
            "supposes": None if self.supposes is None else self.supposes.place,
            "reason": self.reason.name,
        }

    def __str__(self) -> str:
        text = f"one {self.kind} factorization of {self.matrix.name} for: {some_of(self.work)}"
        if self.supposes is not None:
            needed = "positive definite" if self.kind == "Cholesky" else "symmetric"
            text += f"; if it is {needed}, as {self.supposes.place} takes it to be"
        return f"{text}. Not done: {self.reason.value}"


@dataclass(frozen=True, eq=False)
class InverseProduct:
    """A product with an inverse, which is what a solve computes.

    Attributes
    ----------
    inverse
        The node that inverts the matrix.
    product, name, path
        The node that multiplies by the inverse or its transpose, and where it is.
    """

    inverse: MatrixWork
    product: Apply[Any]
    name: str
    path: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        where = place(self.path, self.name)
        return {"inverse": self.inverse.place, "product": where}

    def __str__(self) -> str:
        return f"{place(self.path, self.name)} multiplies by {self.inverse.place}"


@dataclass(frozen=True, eq=False)
class UnknownWork:
    """A node of which it is not known whether it works on matrices.

    Attributes
    ----------
    node, name, path
        The node, and where it is.
    why
        Why that is not known.
    """

    node: Apply[Any]
    name: str
    path: tuple[str, ...]
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {"name": self.name, "path": list(self.path), "why": self.why}

    def __str__(self) -> str:
        return f"{place(self.path, self.name)}: {self.why}"


@dataclass(frozen=True, eq=False)
class MatricesRecord:
    """What an audit found about work on matrices.

    Products of sparse matrices are left out: their work depends on how many elements are stored.

    Attributes
    ----------
    work
        The nodes that work on matrices, in the order in which they run; those of an inner graph
        where its node is.
    matrices
        Those that more than one of the nodes factorizes or solves with. The same values are the
        same matrix, wherever and however often they are computed; transposes are seen through, as
        are copies, checks, kernels and work in place. Of a triangular solve it is a triangle, and
        not the same as the other or as the whole.
    factorizations
        Which nodes could share one.
    repeated
        Nodes that compute the same values as each other, or multiply the same matrices.
    inverse_products
        Products with an inverse.
    unknown
        Nodes that may work on matrices, or may not.
    """

    work: tuple[MatrixWork, ...]
    matrices: tuple[SharedMatrix, ...]
    factorizations: tuple[Factorization, ...]
    repeated: tuple[tuple[MatrixWork, ...], ...]
    inverse_products: tuple[InverseProduct, ...]
    unknown: tuple[UnknownWork, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many nodes do cubic work, by the class of op."""
        return dict(sorted(Counter(work.op for work in self.work if work.order == 3).items()))

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {
            "counts": self.counts,
            "work": [work.to_dict() for work in self.work],
            "matrices": [matrix.to_dict() for matrix in self.matrices],
            "factorizations": [shared.to_dict() for shared in self.factorizations],
            "repeated": [_places(group) for group in self.repeated],
            "inverse_products": [product.to_dict() for product in self.inverse_products],
            "unknown": [op.to_dict() for op in self.unknown],
        }
