"""Possible savings: shareable factorizations, repeated work, and inverses instead of solves."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pytensor.tensor.blas import Gemv
from pytensor.tensor.linalg.decomposition.qr import QR
from pytensor.tensor.linalg.decomposition.schur import Schur
from pytensor.tensor.linalg.inverse import MatrixInverse

from pytensor_fuse._audit.sections.matrices.kinds import (
    FACTORS,
    ONE_WAY,
    PRODUCT,
    TRIANGULAR,
    core_of,
)
from pytensor_fuse._audit.sections.matrices.record import (
    Factorization,
    InverseProduct,
    MatrixWork,
    SharedMatrix,
)
from pytensor_fuse._audit.sections.matrices.why_not import why_not_shared
from pytensor_fuse._reports.text import place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._audit.context.values import Matrix, Values
    from pytensor_fuse._audit.sections.matrices.work import Found
    from pytensor_fuse._core import Term


def by_matrix(
    found: Sequence[Found], values: Values
) -> tuple[tuple[SharedMatrix, ...], tuple[Factorization, ...]]:
    groups: dict[tuple[Term, str], list[Found]] = defaultdict(list)
    for one in found:
        if one.matrix is not None:
            groups[one.matrix.values, _part(one.work.node, one.matrix)].append(one)
    shared = {key: group for key, group in groups.items() if len(group) > 1}
    holders = first_holders(values, {value for value, _ in shared})
    matrices: list[SharedMatrix] = []
    factorizations: list[Factorization] = []
    for (value, part), group in shared.items():
        name, variable = holders[value]
        matrix = SharedMatrix(name, variable, part, tuple(one.work for one in group))
        matrices.append(matrix)
        factorizations += _shareable(matrix, group)
    return tuple(matrices), tuple(factorizations)


def _part(node: Apply[Any], matrix: Matrix) -> str:
    """Return the part of the untransposed matrix that ``node`` reads."""
    core = core_of(node.op)
    if type(core) not in TRIANGULAR:
        return ""
    triangle = "lower triangle" if core.lower != matrix.transposed else "upper triangle"
    # The factor of a Cholesky solve has no implicit unit diagonal.
    unit = getattr(core, "unit_diagonal", False)
    return f"{triangle} with ones on the diagonal" if unit else triangle


def _shareable(matrix: SharedMatrix, group: Sequence[Found]) -> Iterator[Factorization]:
    """Iterate over the factorizations that could each replace several."""
    rest = [one for one in group if one.kind.factorization]
    if any(one.kind.factorization == "Cholesky" for one in rest):
        able = [one for one in rest if one.kind.from_cholesky]
        rest = [one for one in rest if not one.kind.from_cholesky]
        yield from _one_for(matrix, "Cholesky", able)
    groups: dict[tuple[str, bool, tuple[object, ...]], list[Found]] = defaultdict(list)
    for one in rest:
        factorization = one.kind.factorization
        assert one.matrix is not None
        transposed = factorization in ONE_WAY and one.matrix.transposed
        groups[factorization, transposed, _variant(one.work.node)].append(one)
    for (factorization, *_), members in groups.items():
        yield from _one_for(matrix, factorization, members)


def _variant(node: Apply[Any]) -> tuple[object, ...]:
    """Return the options that distinguish the factorization of ``node`` from others of its kind."""
    core = core_of(node.op)
    if type(core) is QR:
        # The triangle and the matrices of "economic" are parts of those of "full"; "raw" returns
        # reflectors instead.
        return core.pivoting, core.mode == "raw"
    if type(core) is Schur:
        return core.output, core.sort
    return ()


def _one_for(
    matrix: SharedMatrix, factorization: str, members: Sequence[Found]
) -> Iterator[Factorization]:
    if len(members) > 1:
        # A node that supposes a symmetric matrix does not suppose a positive definite one.
        able = [
            m
            for m in members
            if factorization != "Cholesky" or m.kind.factorization == factorization
        ]
        supposes = next((one.work for one in able if one.kind.supposes), None)
        reason = why_not_shared(members, factorization)
        work = tuple(one.work for one in members)
        yield Factorization(factorization, matrix, work, supposes, reason)


def repeated(found: Sequence[Found]) -> tuple[tuple[MatrixWork, ...], ...]:
    groups: dict[Term | frozenset[tuple[Matrix, Matrix]], list[MatrixWork]] = defaultdict(list)
    for one in found:
        node = one.work.node
        if one.kind is PRODUCT:
            left, right = (
                one.values.matrix(node.inputs[at]) for at in FACTORS[type(core_of(node.op))]
            )
            # The transpose of a product is the product of the transposes in reverse order.
            groups[frozenset({(left, right), (right.flipped(), left.flipped())})].append(one.work)
        else:
            groups[one.values.of(node.outputs[0])].append(one.work)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def inverse_products(found: Sequence[Found], values: Values) -> tuple[InverseProduct, ...]:
    inverses: dict[Term, MatrixWork] = {}
    for one in found:
        if type(core_of(one.work.node.op)) is MatrixInverse:
            inverses.setdefault(one.values.matrix(one.work.node.outputs[0]).values, one.work)
    if not inverses:
        return ()
    products = []
    for graph in values.walk():
        for node in graph.context.order:
            core = core_of(node.op)
            # Gemv has a subclass for C.
            for at in FACTORS.get(Gemv if isinstance(core, Gemv) else type(core), ()):
                inverse = inverses.get(graph.matrix(node.inputs[at]).values)
                if inverse is not None:
                    name = graph.context.name(node)
                    products.append(InverseProduct(inverse, node, name, graph.context.path))
    return tuple(products)


def first_holders(values: Values, wanted: set[Term]) -> dict[Term, tuple[str, Variable[Any, Any]]]:
    """Return the first variable that holds each term, with its name."""
    holders: dict[Term, tuple[str, Variable[Any, Any]]] = {}
    for graph in values.walk():
        context = graph.context
        computed = (output for node in context.order for output in node.outputs)
        read = (variable for node in context.order for variable in node.inputs)
        for variable in (*context.fgraph.inputs, *computed, *read):
            value = graph.of(variable)
            if value in wanted and value not in holders:
                holders[value] = (place(context.path, context.variable_name(variable)), variable)
    return holders
