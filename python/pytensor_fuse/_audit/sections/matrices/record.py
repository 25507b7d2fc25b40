"""Records of work on matrices: the nodes that do it, and possible sharing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor_fuse._reports.entries import plain_fields
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
        Its position in the order in which its graph runs, and ``op``.
    path
        The names of the nodes whose inner graphs enclose it, the outermost first.
    op
        The class of the op that works on single matrices.
    order
        The power of the lengths with which the work grows: 3, or 2 for a triangular or Cholesky
        solve with a single right-hand side.
    lengths
        The lengths with which the work grows, None where one is unknown: (m, n) for an m by n
        matrix, (n, number of right-hand sides) for a solve, (m, k, n) for a product of m by k and
        k by n.
    batch
        The number of matrices that it works on in turn; None if unknown.
    runs
        How often it runs in a call of the function, or at most in a branch; None if unknown.
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
        """Return the work in plain types, as in JSON."""
        return plain_fields(self, without=("node",))

    @property
    def place(self) -> str:
        """Its name, after the names of the nodes whose inner graphs enclose it."""
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
    """Format a number that may be unknown."""
    return "unknown" if n is None else f"{n:,}"


def some_of(work: Sequence[MatrixWork]) -> str:
    """Return the places of the first of some nodes, and the number of the others."""
    shown = ", ".join(places(work[:SHOWN_LINES]))
    return f"{shown} and {len(work) - SHOWN_LINES:,} more" if len(work) > SHOWN_LINES else shown


def places(work: Iterable[MatrixWork]) -> list[str]:
    """Return the places of some nodes."""
    return [one.place for one in work]


@dataclass(frozen=True, eq=False)
class SharedMatrix:
    """A matrix that several nodes work on.

    Attributes
    ----------
    name
        The name of the first variable with its values, or of the node that computes that.
    variable
        That variable.
    part
        The part of the matrix that is used: empty for all, or the triangle of a triangular solve.
    work
        The nodes that factorize the matrix or its transpose, or solve with it.
    """

    name: str
    variable: Variable[Any, Any]
    part: str
    work: tuple[MatrixWork, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the matrix in plain types, as in JSON."""
        return {"name": self.name, "part": self.part, "work": places(self.work)}

    def __str__(self) -> str:
        return f"{', '.join(filter(None, (self.name, self.part)))}: {some_of(self.work)}"


@dataclass(frozen=True, eq=False)
class Factorization:
    """One factorization that could replace several.

    Attributes
    ----------
    kind
        ``"Cholesky"``, ``"LU"``, ``"SVD"``, ``"symmetric eigenvalue"``, ``"QR"``, ``"eigenvalue"``
        or ``"Schur"``.
    matrix
        The factorized matrix.
    work
        The nodes that each factorize that matrix now, and could share one factorization.
    supposes
        One of these nodes that supposes the property that the factorization requires of the matrix,
        positive definite or symmetric; None if the factorization exists for any matrix.
    reason
        Why the rules of the feature `linalg` have not shared it.
    """

    kind: str
    matrix: SharedMatrix
    work: tuple[MatrixWork, ...]
    supposes: MatrixWork | None
    reason: LinalgReason

    def to_dict(self) -> dict[str, Any]:
        """Return the factorization in plain types, as in JSON."""
        return {
            "kind": self.kind,
            "matrix": self.matrix.name,
            "work": places(self.work),
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
    """A product with an inverse, which could be a solve.

    Attributes
    ----------
    inverse
        The node that inverts the matrix.
    product, name, path
        The node that multiplies by the inverse or its transpose, and its place.
    """

    inverse: MatrixWork
    product: Apply[Any]
    name: str
    path: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the product in plain types, as in JSON."""
        return {"inverse": self.inverse.place, "product": place(self.path, self.name)}

    def __str__(self) -> str:
        return f"{place(self.path, self.name)} multiplies by {self.inverse.place}"


@dataclass(frozen=True, eq=False)
class UnknownWork:
    """A node that may or may not work on matrices.

    Attributes
    ----------
    node, name, path
        The node, and its place.
    why
        Why its work is unknown.
    """

    node: Apply[Any]
    name: str
    path: tuple[str, ...]
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return the node in plain types, as in JSON."""
        return plain_fields(self, without=("node",))

    def __str__(self) -> str:
        return f"{place(self.path, self.name)}: {self.why}"
