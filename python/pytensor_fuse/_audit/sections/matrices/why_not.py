"""Diagnosis of work on matrices that was not saved: the reason that applies to some nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.inverse import MatrixInverse

from pytensor_fuse._audit.sections.matrices.kinds import core_of
from pytensor_fuse._audit.sections.matrices.reasons import LinalgReason
from pytensor_fuse._linalg.notes import notes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._audit.sections.matrices.work import Found

# The names of rules in PyTensor's databases.
INVERSE_RULE = "linalg_inverse_of_factorized_matrix"
GRADIENT_RULE = "linalg_cholesky_gradient"
IDENTITY_RULE = "linalg_inverse_from_cholesky"


def why_not_shared(members: Sequence[Found], factorization: str) -> LinalgReason:
    """Return the reason why nodes that factorize the same matrix do not share it."""
    inverse = next((m for m in members if type(core_of(m.work.node.op)) is MatrixInverse), None)
    if inverse is not None:
        found = _why_not_tried(inverse, INVERSE_RULE)
    else:
        # Other factorizations are left to PyTensor's own rewriters.
        found = _why_not_seen(members[0])
    if found is not None:
        return found
    matrices = [_matrix_of(m) for m in members]
    if (of_elements := _why_not_by_type(matrices)) is not None:
        return of_elements
    supposed = all(m.kind.supposes for m in members)
    if factorization == "Cholesky" and not supposed:
        one, *others = map(_without_moved_axes, matrices)
        if any(other is not one for other in others):
            return LinalgReason.EQUAL_BY_VALUE
        return LinalgReason.NOT_KNOWN_POSITIVE_DEFINITE
    return LinalgReason.NO_RULE


def why_not_in_closed_form(solve: Found, factorization: Apply[Any]) -> LinalgReason:
    """Return the reason why a Cholesky gradient uses solves with the whole factor."""
    found = _why_not_tried(solve, GRADIENT_RULE) or _why_not_by_type([_matrix_of(solve)])
    if found is not None:
        return found
    core = core_of(factorization.op)
    if type(core) is Cholesky and not core.lower:
        return LinalgReason.UPPER_FACTOR
    return LinalgReason.GRADIENT_TERM


def why_solved_with_identity(solve: Found) -> LinalgReason:
    """Return the reason why a solve with the identity is not the inverse from the factor."""
    return (
        _why_not_tried(solve, IDENTITY_RULE)
        or _why_not_by_type([_matrix_of(solve)])
        or LinalgReason.NO_RULE
    )


def _matrix_of(member: Found) -> Variable[Any, Any]:
    assert member.kind.matrix is not None
    return member.work.node.inputs[member.kind.matrix]


def _why_not_seen(member: Found) -> LinalgReason | None:
    if notes_of(member.values.context.fgraph) is not None:
        return None
    return LinalgReason.INNER_GRAPH if member.work.path else LinalgReason.NOT_RUN


def _why_not_tried(member: Found, rule: str) -> LinalgReason | None:
    notes = notes_of(member.values.context.fgraph)
    if notes is None:
        return _why_not_seen(member)
    if rule not in notes.ran:
        return LinalgReason.RULE_EXCLUDED
    return None if notes.ran[rule] else LinalgReason.OP_UNKNOWN


def _why_not_by_type(matrices: Sequence[Any]) -> LinalgReason | None:
    if any(matrix.type.numpy_dtype.kind == "c" for matrix in matrices):
        return LinalgReason.COMPLEX
    if any(matrix.type.ndim > 2 for matrix in matrices):
        return LinalgReason.BATCHED
    return None


def _without_moved_axes(variable: Any) -> Any:
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        [variable] = variable.owner.inputs
    return variable
