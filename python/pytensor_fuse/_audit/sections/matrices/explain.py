"""Reports on matrices: the rules applied to the work on each, and reasons against others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor.tensor.basic import Eye
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular

from pytensor_fuse._audit.context.build import graph_context
from pytensor_fuse._audit.context.values import Values
from pytensor_fuse._audit.sections.matrices.families import Families, Family, Member
from pytensor_fuse._audit.sections.matrices.kinds import MatrixPurpose, core_of
from pytensor_fuse._audit.sections.matrices.operations import PARTS, length_of, operations
from pytensor_fuse._audit.sections.matrices.reasons import LinalgReason
from pytensor_fuse._audit.sections.matrices.sharing import by_matrix, first_holders
from pytensor_fuse._audit.sections.matrices.why_not import (
    why_not_in_closed_form,
    why_solved_with_identity,
)
from pytensor_fuse._audit.sections.matrices.work import Found, find_work
from pytensor_fuse._linalg.costs import Cost
from pytensor_fuse._linalg.notes import Applied, GraphNotes, notes_of
from pytensor_fuse._pytensor.graphs.provenance import SourceLine, is_library, line_that_made
from pytensor_fuse._reports.asked import function_or_graph
from pytensor_fuse._reports.entries import Entries
from pytensor_fuse._reports.text import count, place, some

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from enum import Enum

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._audit.context.graph import GraphContext
    from pytensor_fuse._audit.sections.matrices.record import Factorization, MatrixWork
    from pytensor_fuse._core import Term
    from pytensor_fuse._reports.asked import GraphLike

# Rules after which a matrix may have no readers: they use its parts, its diagonal or the matrix
# that it inverts instead.
STRUCTURE_RULES = frozenset(
    f"linalg_{rule}"
    for rule in (
        *("product_with_structured_sum", "diagonal_of_structured_sum", "sum_of_structured_product"),
        *("woodbury_solve", "woodbury_inverse", "determinant_lemma"),
        *("kronecker_determinant", "kronecker_gradient", "kronecker_solve", "kronecker_inverse"),
        *("kronecker_times_matrix", "shifted_kronecker_solve", "shifted_kronecker_determinant"),
        *("block_diagonal_solve", "block_diagonal_inverse", "block_diagonal_determinant"),
        *("product_with_block_diagonal_inverse", "product_with_tridiagonal_inverse"),
        *("tridiagonal_solve", "tridiagonal_inverse", "tridiagonal_determinant"),
        *("banded_solve", "banded_inverse", "banded_determinant", "product_with_banded_inverse"),
        *("triangular_solve", "triangular_inverse", "triangular_determinant"),
        *("product_with_triangular_inverse", "cholesky_of_triangular_product"),
        *("product_that_cancels_inverse", "diagonal_of_triangular_inverse", "undone_inverse"),
        "work_on_toeplitz_matrix",
    )
)

# The number of nodes of a kind in a line of a report.
_SHOWN = 6


@dataclass(frozen=True)
class MatrixUse:
    """A node that works on a matrix, its factor or its inverse.

    Attributes
    ----------
    node
        The names of the enclosing nodes, if any, the node's position in the order in which its
        graph runs, and its op.
    purpose
        The purpose of the node.
    columns
        The number of right-hand sides of a solve; None if unknown, or for another node.
    factorization
        The factorization that it computes: ``"Cholesky"``, ``"LU"`` and so on, or empty.
    """

    node: str
    purpose: MatrixPurpose
    columns: int | None
    factorization: str

    def __str__(self) -> str:
        notes = []
        if self.purpose is MatrixPurpose.SOLVE:
            many = self.columns
            text = "k right-hand sides" if many is None else count(many, "right-hand side")
            notes.append(text)
        if self.factorization and self.purpose is not MatrixPurpose.FACTORIZATION:
            notes.append(f"with {self.factorization} of its own")
        return f"{self.node} ({', '.join(notes)})" if notes else self.node


@dataclass(frozen=True)
class NotShared:
    """Work that was left unchanged.

    Attributes
    ----------
    nodes
        The nodes that do the work.
    reason
        The reason.
    """

    nodes: tuple[str, ...]
    reason: LinalgReason

    def __str__(self) -> str:
        return f"{some(self.nodes, _SHOWN)}: {self.reason.value}"


@dataclass(frozen=True)
class MatrixReport:
    """The work on one matrix, the applied rules, and the work that was not shared.

    Attributes
    ----------
    matrix
        The name of the variable, or of the node that computes it.
    rows
        The number of rows; None if unknown.
    batch
        The number of matrices in the batch; None if unknown.
    line
        The line of the user's program that constructed the matrix, or else the first known one
        that requested work on it.
    uses
        The nodes that work on it, its factors and its inverse, in the order in which they run.
    operations
        The approximate number of floating-point operations of these nodes in a call, as a number or
        a formula: in ``n`` rows, ``k`` right-hand sides, batches of ``b``, ``t`` runs in a loop.
        All numbers are taken to be real.
    uncounted
        The number of nodes whose operations are not included.
    rules
        The rules that were applied to the work on it, in this order, each once.
    not_shared
        The work that was not saved, with reasons.
    """

    matrix: str
    rows: int | None
    batch: int | None
    line: SourceLine | None
    uses: tuple[MatrixUse, ...]
    operations: str
    uncounted: int
    rules: tuple[str, ...]
    not_shared: tuple[NotShared, ...]

    @property
    def factorizations(self) -> tuple[str, ...]:
        """The kinds of the factorizations of the matrix, one item for each factorization."""
        return tuple(use.factorization for use in self.uses if use.factorization)

    def __str__(self) -> str:
        n = "n" if self.rows is None else f"{self.rows:,}"
        head = f"{self.matrix}, {n} x {n}"
        if self.batch != 1:
            head += f", batch of {'b' if self.batch is None else f'{self.batch:,}'}"
        if self.line is not None:
            head += f", {self.line.file}:{self.line.line}"
        lines = [head]
        for purpose in MatrixPurpose:
            those = [str(use) for use in self.uses if use.purpose is purpose]
            if those:
                lines.append(f"  {purpose.value}: {some(those, _SHOWN)}")
        rest = f", and {count(self.uncounted, 'node')} not counted" if self.uncounted else ""
        lines.append(f"  operations: {self.operations}{rest}")
        if self.rules:
            lines.append(f"  rules: {', '.join(self.rules)}")
        lines += [f"  not shared: {one}" for one in self.not_shared]
        return "\n".join(lines)


class MatrixReports(Entries[MatrixReport]):
    """The reports on the matrices of a graph: a tuple of `MatrixReport`, which prints as text."""

    _if_empty = "there is no cubic work on matrices"


def explain_linalg(
    graph: GraphLike,
    *,
    shapes: Mapping[Variable[Any, Any] | str, Sequence[int | None]] | None = None,
) -> MatrixReports:
    """Report the work on each matrix, the applied rules of `linalg`, and reasons against others.

    Parameters
    ----------
    graph : Function or FunctionGraph
        A compiled function, or its graph.
    shapes : mapping of Variable or str to sequence of int or None, optional
        Shapes of inputs, by variable or name, as for `audit`.

    Returns
    -------
    MatrixReports
        A tuple of a `MatrixReport` for each matrix, or batch of matrices, with cubic factorizations
        or solves, in the order of the first such work, then one for each matrix that rules have
        replaced by its parts, on which no work is left. Applied rules are recorded for the compiled
        graph only, not for copies or unpickled graphs.

    Raises
    ------
    TypeError, ValueError
        As in `audit`.

    Examples
    --------
    >>> import pytensor
    >>> import pytensor.tensor as pt
    >>> from pytensor_fuse import explain
    >>> K, y = pt.matrix("K"), pt.vector("y")
    >>> density = -0.5 * (y @ pt.linalg.inv(K) @ y + pt.linalg.slogdet(K)[1])
    >>> f = pytensor.function([K, y], [density, pt.grad(density, K)])
    >>> [report] = explain(f, "linalg")
    >>> report.factorizations
    ('LU',)
    >>> report.rules[-1]
    'linalg_inverse_of_factorized_matrix'
    >>> print(explain(pytensor.function([y], y * 2), "linalg"))
    there is no cubic work on matrices
    """
    compiled = function_or_graph("explain", graph)
    return MatrixReports(explain(graph_context(compiled, shapes)))


def explain(context: GraphContext) -> tuple[MatrixReport, ...]:
    """Report on the matrices of a graph; O(nodes + edges)."""
    values = Values(context)
    found = list(find_work(values))
    families = Families(found, values)
    cubic = [family for family in families if family.is_cubic]
    holders = first_holders(values, {family.matrix for family in cubic})
    _, shareable = by_matrix(found, values)
    by_node = {work.node: one for one in shareable for work in one.work}
    applied = _applied(values, families)
    unserved = _unserved(values, families)
    reports = [
        _report(
            family,
            families,
            holders[family.matrix],
            by_node,
            applied.get(family.matrix, {}).values(),
            unserved.get(family.matrix, ()),
        )
        for family in cubic
    ]
    reported = {id(one) for family in cubic for one in applied.get(family.matrix, {}).values()}
    return (*reports, *_replaced(values, reported))


def _report(
    family: Family,
    families: Families,
    holder: tuple[str, Variable[Any, Any]],
    shareable: Mapping[Apply[Any], Factorization],
    applied: Collection[Applied],
    unserved: Sequence[Enum],
) -> MatrixReport:
    name, variable = holder
    costs = [
        operations(one.found.work, square=one.square)
        for one in family.members
        if one.found is not None
    ]
    known = [cost for cost in costs if cost is not None]
    total = sum(known, start=Cost())
    lengths = (length_of(one.work) for one in family.work)
    return MatrixReport(
        matrix=name,
        rows=next((n for n in lengths if isinstance(n, int)), None),
        batch=family.work[0].work.batch,
        line=_line(variable, family, applied),
        uses=tuple(_use(one) for one in family.members),
        operations=total.in_words(parts=PARTS),
        uncounted=len(costs) - len(known),
        rules=tuple(dict.fromkeys(one.rule for one in applied)),
        not_shared=(*_not_structured(family, unserved), *_not_shared(family, families, shareable)),
    )


def _replaced(values: Values, reported: Collection[int]) -> Iterator[MatrixReport]:
    """Report on the matrices that structural rules have replaced by their parts."""
    for graph in values.walk():
        notes = notes_of(graph.context.fgraph)
        if notes is None:
            continue
        groups: dict[int, list[Applied]] = {}
        for one in notes.applied.values():
            groups.setdefault(one.first, []).append(one)
        for those in groups.values():
            # Matrices that still exist have reports of their own.
            if any(id(one) in reported for one in those):
                continue
            if not any(one.rule in STRUCTURE_RULES and not one.stays for one in those):
                continue
            yield MatrixReport(
                matrix=those[0].matrix,
                rows=those[0].rows,
                batch=1,
                line=_first_of_user(one.line for one in those),
                uses=(),
                operations="0",
                uncounted=0,
                rules=tuple(dict.fromkeys(one.rule for one in those)),
                not_shared=(),
            )


def _not_structured(family: Family, unserved: Sequence[Enum]) -> Iterator[NotShared]:
    """Yield the reasons why a matrix with structure is factorized as a whole."""
    work = [
        one.found.work
        for one in family.members
        if one.found is not None and one.found.kind.factorization
    ]
    if work:
        for reason in unserved:
            yield NotShared(_places(work), LinalgReason[reason.name])


def _line(
    variable: Variable[Any, Any], family: Family, applied: Collection[Applied]
) -> SourceLine | None:
    made = (output for one in family.members for output in one.node.outputs)
    return _first_of_user(
        (line_that_made([variable]), *(one.line for one in applied), line_that_made(made))
    )


def _first_of_user(lines: Iterable[SourceLine | None]) -> SourceLine | None:
    """Return the first line that is not a library's."""
    return next((line for line in lines if line is not None and not is_library(line.file)), None)


def _use(member: Member) -> MatrixUse:
    found = member.found
    if found is None:
        context = member.values.context
        position = context.positions[member.node]
        name = f"{position}: {type(core_of(member.node.op)).__name__}"
        return MatrixUse(place(context.path, name), member.purpose, None, "")
    is_solve = member.purpose is MatrixPurpose.SOLVE
    return MatrixUse(
        found.work.place,
        member.purpose,
        found.work.lengths[1] if is_solve and len(found.work.lengths) > 1 else None,
        found.kind.factorization,
    )


def _not_shared(
    family: Family, families: Families, shareable: Mapping[Apply[Any], Factorization]
) -> Iterator[NotShared]:
    seen: set[int] = set()
    members = family.work
    factorizing = [one for one in members if one.kind.factorization]
    for one in members:
        node = one.work.node
        shared = shareable.get(node)
        if shared is not None:
            if id(shared) not in seen:
                seen.add(id(shared))
                yield NotShared(_places(shared.work), shared.reason)
        elif type(core_of(node.op)) is MatrixInverse and factorizing == [one]:
            yield NotShared(_places([one.work]), LinalgReason.ONLY_INVERSE)
    yield from _gradients(members, families)


def _gradients(members: Sequence[Found], families: Families) -> Iterator[NotShared]:
    """Find the savings of the closed form of the gradient of a Cholesky factorization."""
    solved = {
        one.values.matrix(one.work.node.outputs[0]): one
        for one in members
        if _is_cubic(one, SolveTriangular)
    }
    for one in members:
        if _is_cubic(one, CholeskySolve):
            right = one.work.node.inputs[1]
            if right.owner is not None and type(core_of(right.owner.op)) is Eye:
                yield NotShared(_places([one.work]), why_solved_with_identity(one))
        elif _is_cubic(one, SolveTriangular) and one.matrix is not None:
            factorization = families.factorization_of(one.matrix.values)
            inner = solved.get(one.values.matrix(one.work.node.inputs[1]).flipped())
            if factorization is None or inner is None or inner.matrix != one.matrix:
                continue
            reason = why_not_in_closed_form(one, factorization)
            yield NotShared(_places([inner.work, one.work]), reason)


def _is_cubic(one: Found, class_: type[Any]) -> bool:
    return type(core_of(one.work.node.op)) is class_ and one.work.order == 3


def _places(work: Sequence[MatrixWork]) -> tuple[str, ...]:
    return tuple(one.place for one in work)


def _applied(values: Values, families: Families) -> dict[Term, dict[int, Applied]]:
    """Return the rules applied to the work on each matrix, in their order."""
    found: dict[Term, dict[int, Applied]] = {}
    for matrix, variable, notes in _noted(values, families):
        applied = notes.applied_to(variable)
        if applied:
            found.setdefault(matrix, {}).update(applied)
    return {matrix: {i: of[i] for i in sorted(of)} for matrix, of in found.items()}


def _unserved(values: Values, families: Families) -> dict[Term, tuple[Enum, ...]]:
    """Return the reasons why the structure of matrices is not used."""
    found: dict[Term, dict[Enum, None]] = {}
    for matrix, variable, notes in _noted(values, families):
        found.setdefault(matrix, {}).update(dict.fromkeys(notes.unserved(variable)))
    return {matrix: tuple(reasons) for matrix, reasons in found.items()}


def _noted(
    values: Values, families: Families
) -> Iterator[tuple[Term, Variable[Any, Any], GraphNotes]]:
    """Iterate over the variables read in graphs with notes, each with its matrix."""
    for graph in values.walk():
        notes = notes_of(graph.context.fgraph)
        if notes is not None:
            read = dict.fromkeys(v for node in graph.context.order for v in node.inputs)
            for variable in read:
                yield families.root(graph.matrix(variable).values), variable, notes
