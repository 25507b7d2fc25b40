"""The part of an audit about work on matrices that grows with the cube of their size."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.compile.ops import FromFunctionOp
from pytensor.scan.op import Scan
from pytensor.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.decomposition.eigen import Eig, Eigh, Eigvalsh
from pytensor.tensor.linalg.decomposition.lu import LU, LUFactor
from pytensor.tensor.linalg.decomposition.qr import QR
from pytensor.tensor.linalg.decomposition.schur import QZ, Schur
from pytensor.tensor.linalg.decomposition.svd import SVD
from pytensor.tensor.linalg.inverse import MatrixInverse, MatrixPinv, TensorInv
from pytensor.tensor.linalg.products import Expm
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.linear_control import TRSYL
from pytensor.tensor.linalg.solvers.lstsq import Lstsq, TensorSolve
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.linalg.summary import Det, SLogDet
from pytensor.tensor.math import Dot
from pytensor.tensor.random.basic import MvNormalRV

from pytensor_fuse._audit.values import Values, is_pytensors, passes
from pytensor_fuse._reports.tables import SHOWN_LINES, bounded, count, paragraphs, place, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.op import Op

    from pytensor_fuse._audit.graph import GraphContext
    from pytensor_fuse._audit.shapes import Lengths
    from pytensor_fuse._audit.values import Matrix
    from pytensor_fuse._core import Term

_ALL_WORK = "all work on matrices"


@dataclass(frozen=True, eq=False)
class MatrixWork:
    """A node that factorises a matrix, solves with one or multiplies two.

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
    def size(self) -> str:
        """The lengths, in words."""
        return " x ".join("?" if n is None else str(n) for n in self.lengths)

    def __str__(self) -> str:
        text = f"{_name(self)} ({self.size})"
        if self.batch != 1:
            text += f", batch: {_number(self.batch)}"
        if self.runs != 1:
            text += f", runs: {_number(self.runs)}"
        if self.invariant:
            text += ", the same each time"
        return text


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
        The nodes that factorise the matrix or its transpose, or solve with it.
    """

    name: str
    variable: Variable[Any, Any]
    part: str
    work: tuple[MatrixWork, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {"name": self.name, "part": self.part, "work": _names(self.work)}

    def __str__(self) -> str:
        return f"{', '.join(filter(None, (self.name, self.part)))}: {_list(self.work)}"


@dataclass(frozen=True, eq=False)
class Factorisation:
    """One factorisation that could take the place of several.

    Attributes
    ----------
    kind
        ``"Cholesky"``, ``"LU"``, ``"SVD"``, ``"symmetric eigenvalue"``, ``"QR"``, ``"eigenvalue"``
        or ``"Schur"``.
    matrix
        Of what.
    work
        The nodes that each factorise that matrix now, and could use the one.
    supposes
        A node among these that is right only if the matrix is what the factorisation needs,
        positive definite or symmetric; None if any matrix will do.
    """

    kind: str
    matrix: SharedMatrix
    work: tuple[MatrixWork, ...]
    supposes: MatrixWork | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {
            "kind": self.kind,
            "matrix": self.matrix.name,
            "work": _names(self.work),
            "supposes": None if self.supposes is None else _name(self.supposes),
        }

    def __str__(self) -> str:
        text = f"one {self.kind} factorisation of {self.matrix.name} for: {_list(self.work)}"
        if self.supposes is None:
            return text
        needed = "positive definite" if self.kind == "Cholesky" else "symmetric"
        return f"{text}; if it is {needed}, as {_name(self.supposes)} takes it to be"


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
        return {"inverse": _name(self.inverse), "product": where}

    def __str__(self) -> str:
        return f"{place(self.path, self.name)} multiplies by {_name(self.inverse)}"


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
class MatricesSection:
    """What an audit found about work on matrices.

    Products of sparse matrices are left out: their work depends on how many elements are stored.

    Attributes
    ----------
    work
        The nodes that work on matrices, in the order in which they run; those of an inner graph
        where its node is.
    matrices
        Those that more than one of the nodes factorises or solves with. The same values are the
        same matrix, wherever and however often they are computed; transposes are seen through, as
        are copies, checks, kernels and work in place. Of a triangular solve it is a triangle, and
        not the same as the other or as the whole.
    factorisations
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
    factorisations: tuple[Factorisation, ...]
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
            "factorisations": [shared.to_dict() for shared in self.factorisations],
            "repeated": [_names(group) for group in self.repeated],
            "inverse_products": [product.to_dict() for product in self.inverse_products],
            "unknown": [op.to_dict() for op in self.unknown],
        }

    def lines(self) -> list[str]:
        """Return the lines of the text, of each kind so many at most."""
        lines = [self._summary()]
        for title, found in self._findings():
            if found:
                lines.append(f"{title}:")
                lines += [f"  {line}" for line in bounded(found, str, "of these")]
        return lines

    def html(self) -> str:
        """Return the body of the section."""
        parts = [paragraphs([self._summary()])]
        for title, found in self._findings()[:-1]:
            if found:
                parts += [f"<h3>{title.capitalize()}</h3>", paragraphs([str(one) for one in found])]
        if self.work:
            rows = [
                (_name(one), one.size, _number(one.batch), _number(one.runs)) for one in self.work
            ]
            parts.append(f"<h3>{_ALL_WORK.capitalize()}</h3>")
            parts.append(table(("node", "size", "batch", "runs"), rows, numbers=(1, 2, 3)))
        return "".join(parts)

    def _summary(self) -> str:
        counts = self.counts
        by_op = ", ".join(f"{n:,} {op}" for op, n in counts.items())
        text = count(sum(counts.values()), "cubic operation") + (f": {by_op}" if by_op else "")
        n_solves = sum(work.order < 3 for work in self.work)
        solves = count(n_solves, "solve", "solves")
        return f"{text}; {solves} of a single right-hand side" if n_solves else text

    def _findings(self) -> list[tuple[str, Sequence[object]]]:
        return [
            ("could share", self.factorisations),
            ("computed more than once", [_list(group) for group in self.repeated]),
            ("could be a solve", self.inverse_products),
            ("the same at each step of a loop", [work for work in self.work if work.invariant]),
            ("may be work on matrices or not", self.unknown),
            ("the same matrix", self.matrices),
            (_ALL_WORK, self.work),
        ]


def audit_matrices(context: GraphContext) -> MatricesSection:
    """Find the work on matrices in a graph and in the graphs in it.

    Notes
    -----
    O(nodes + edges); the values of all variables are numbered once, and only if there is any work.
    """
    if not any(_kind(node) for graph in context.walk() for node in graph.order):
        return MatricesSection((), (), (), (), (), _unknown(context))
    values = Values(context)
    found = list(_find(values))
    matrices, factorisations = _by_matrix(found, values)
    return MatricesSection(
        work=tuple(one.work for one in found),
        matrices=matrices,
        factorisations=factorisations,
        repeated=_repeated(found),
        inverse_products=_inverse_products(found, values),
        unknown=_unknown(context),
    )


# What ops do ------------------------------------------------------------------------------


class _Kind(NamedTuple):
    """What an op does to matrices.

    Attributes
    ----------
    matrix
        Which input holds the matrix that it factorises or solves with; None for products.
    factorisation
        The one that it makes, if it makes one.
    supposes
        Whether the result is right only for a matrix that is positive definite, or symmetric.
    from_cholesky
        Whether it can use a Cholesky factorisation, if there is one.
    """

    matrix: int | None
    factorisation: str = ""
    supposes: bool = False
    from_cholesky: bool = False


_PRODUCT = _Kind(None)
_OTHER = _Kind(0)
_CHOLESKY = _Kind(0, "Cholesky", supposes=True, from_cholesky=True)
_LU = _Kind(0, "LU")
_CHOLESKY_OR_LU = _Kind(0, "LU", from_cholesky=True)
_SVD = _Kind(0, "SVD")
_SYMMETRIC = _Kind(0, "symmetric eigenvalue", supposes=True)

_PRODUCTS: tuple[type[Op], ...] = (Dot, Dot22, Dot22Scalar, Gemm, BatchedDot)
_TRIANGULAR: tuple[type[Op], ...] = (SolveTriangular, CholeskySolve)

# By exact class: a subclass may do anything. None if it depends on the op.
_KINDS: dict[type[Op], _Kind | None] = {
    Cholesky: _CHOLESKY,
    **dict.fromkeys((Det, SLogDet, MatrixInverse), _CHOLESKY_OR_LU),
    **dict.fromkeys((LU, LUFactor), _LU),
    **dict.fromkeys((SVD, Lstsq), _SVD),
    QR: _Kind(0, "QR"),
    Eig: _Kind(0, "eigenvalue"),
    Schur: _Kind(0, "Schur"),
    **dict.fromkeys((Expm, QZ, TRSYL, TensorInv, TensorSolve, *_TRIANGULAR), _OTHER),
    **dict.fromkeys(_PRODUCTS, _PRODUCT),
    **dict.fromkeys((Eigh, Eigvalsh, MatrixPinv, MvNormalRV, Solve), None),
}

# Which inputs they multiply.
_FACTORS: dict[type[Op], tuple[int, int]] = {
    **dict.fromkeys(_PRODUCTS, (0, 1)),
    **dict.fromkeys((Gemm, Gemv), (2, 3)),
}

# Those of the transpose of a matrix do not follow from those of the matrix.
_ONE_WAY = ("QR", "eigenvalue", "Schur")

# Ops of these modules that are not above are new; but for these, of less than cubic work.
_LINEAR_ALGEBRA = ("pytensor.tensor.blas", "pytensor.tensor.linalg")
_CHEAP = {
    *("BlockDiagonal", "PivotToPermutations"),
    *("LUFactorTridiagonal", "SolveLUFactorTridiagonal"),
    *("CGemv", "CGer", "Gemv", "Ger"),
}


def _core(op: Op) -> Any:
    """Return the op that works on single matrices."""
    return op.core_op if isinstance(op, Blockwise) else op


def _kind(node: Apply[Any]) -> _Kind | None:
    """Return what a node does to matrices; None if nothing, or if that is not known."""
    core = _core(node.op)
    kind = type(core)
    if kind is Solve:
        if core.assume_a in ("tridiagonal", "banded"):
            # The work is in proportion to the length, and to the square of the width of the band.
            return None
        kinds = {"pos": _CHOLESKY, "gen": _CHOLESKY_OR_LU}
        return kinds.get(core.assume_a, _CHOLESKY_OR_LU._replace(supposes=True))
    if kind is MatrixPinv:
        return _SYMMETRIC if core.hermitian else _SVD
    if kind in (Eigh, Eigvalsh):
        # With two matrices, it is another problem.
        return _SYMMETRIC if len(node.inputs) == 1 else _OTHER
    if kind is MvNormalRV:
        method = {"cholesky": _CHOLESKY, "svd": _SVD, "eigh": _SYMMETRIC}[core.method]
        return method._replace(matrix=3, from_cholesky=core.method == "cholesky")
    return _KINDS.get(kind)


def _unknown(context: GraphContext) -> tuple[UnknownWork, ...]:
    found = []
    for graph in context.walk():
        with_graphs = {node for node, _ in graph.inner}
        for node in graph.order:
            why = _why_unknown(_core(node.op), has_graph=node in with_graphs)
            if why:
                found.append(UnknownWork(node, graph.name(node), graph.path, why))
    return tuple(found)


def _why_unknown(core: Op, *, has_graph: bool) -> str | None:
    """Say why it is not known whether an op works on matrices; None if that is known."""
    kind = type(core)
    if kind in _KINDS or has_graph:
        return None
    if isinstance(core, FromFunctionOp):
        return "it calls a Python function"
    base = next((known for known in _KINDS if isinstance(core, known)), None)
    if base is not None:
        return f"{kind.__qualname__} is a kind of {base.__name__} that is not known"
    if kind.__module__.startswith(_LINEAR_ALGEBRA):
        return None if kind.__name__ in _CHEAP else f"{kind.__qualname__} is not known"
    if is_pytensors(core) or passes(core):
        return None
    return f"{kind.__qualname__} of {kind.__module__} is not known"


# Where they do it -------------------------------------------------------------------------


class _Found(NamedTuple):
    """Work, with what is known of the values that it is done on."""

    work: MatrixWork
    kind: _Kind
    values: Values
    matrix: Matrix | None


def _find(values: Values, *, in_loop: bool = False) -> Iterator[_Found]:
    """Iterate over the work in a graph, and in the graphs in it."""
    inner = defaultdict(list)
    for node, graph in values.inner:
        inner[node].append(graph)
    for node in values.context.order:
        kind = _kind(node)
        if kind is not None:
            work = _describe(node, kind, values, in_loop=in_loop)
            if work is not None:
                at = kind.matrix
                yield _Found(
                    work, kind, values, None if at is None else values.matrix(node.inputs[at])
                )
        for graph in inner[node]:
            yield from _find(graph, in_loop=in_loop or isinstance(node.op, Scan))


def _describe(node: Apply[Any], kind: _Kind, values: Values, *, in_loop: bool) -> MatrixWork | None:
    """Return the work that ``node`` does; None if it is less than named here."""
    context = values.context
    lengths = _lengths(node, context)
    core = type(_core(node.op))
    if core in _PRODUCTS:
        order = sum(n != 1 for n in lengths)
        is_named = order == 3
    else:
        order = 2 if core in _TRIANGULAR and lengths[1] == 1 else 3
        is_named = lengths[0] != 1
    if not is_named:
        return None
    return MatrixWork(
        node=node,
        name=f"{context.positions[node]}: {core.__name__}",
        path=context.path,
        op=core.__name__,
        order=order,
        lengths=lengths,
        batch=_batch(node, context),
        runs=context.times,
        invariant=in_loop and not values.varies(node),
    )


def _lengths(node: Apply[Any], context: GraphContext) -> Lengths:
    core = _core(node.op)
    shapes = [context.shape(variable) or () for variable in node.inputs]
    if type(core) in _PRODUCTS:
        left, right = (shapes[at] for at in _FACTORS[type(core)])
        inner = right[-2] if left[-1] is None else left[-1]
        return left[-2], inner, right[-1]
    if type(core) in (Solve, *_TRIANGULAR):
        return shapes[0][-1], 1 if core.b_ndim == 1 else shapes[1][-1]
    if type(core) is TRSYL:
        return shapes[0][-1], shapes[1][-1]
    return shapes[3 if type(core) is MvNormalRV else 0][-2:]


def _batch(node: Apply[Any], context: GraphContext) -> int | None:
    """Return how many matrices ``node`` works on."""
    core = _core(node.op)
    if type(core) is MvNormalRV:
        batch = (context.shape(node.inputs[3]) or ())[:-2]
    elif type(core) is BatchedDot:
        batch = (context.shape(node.outputs[0]) or ())[:1]
    else:
        batch = ()
    if isinstance(node.op, Blockwise):
        batch += (context.shape(node.outputs[0]) or ())[: node.op.batch_ndim(node)]
    return None if None in batch else math.prod(n for n in batch if n is not None)


# What could be saved ----------------------------------------------------------------------


def _by_matrix(
    found: Sequence[_Found], values: Values
) -> tuple[tuple[SharedMatrix, ...], tuple[Factorisation, ...]]:
    groups: dict[tuple[Term, str], list[_Found]] = defaultdict(list)
    for one in found:
        if one.matrix is not None:
            groups[one.matrix.values, _part(one.work.node, one.matrix)].append(one)
    shared = {key: group for key, group in groups.items() if len(group) > 1}
    holders = _first_holders(values, {value for value, _ in shared})
    matrices: list[SharedMatrix] = []
    factorisations: list[Factorisation] = []
    for (value, part), group in shared.items():
        name, variable = holders[value]
        matrix = SharedMatrix(name, variable, part, tuple(one.work for one in group))
        matrices.append(matrix)
        factorisations += _shareable(matrix, group)
    return tuple(matrices), tuple(factorisations)


def _part(node: Apply[Any], matrix: Matrix) -> str:
    """Say which part of a matrix ``node`` reads, as it lies where it is not transposed."""
    core = _core(node.op)
    if type(core) not in _TRIANGULAR:
        return ""
    triangle = "lower triangle" if core.lower != matrix.transposed else "upper triangle"
    # The factor of a Cholesky solve has a diagonal of its own.
    unit = getattr(core, "unit_diagonal", False)
    return f"{triangle} with ones on the diagonal" if unit else triangle


def _shareable(matrix: SharedMatrix, group: Sequence[_Found]) -> Iterator[Factorisation]:
    """Iterate over the factorisations that could each take the place of several."""
    rest = [one for one in group if one.kind.factorisation]
    if any(one.kind.factorisation == "Cholesky" for one in rest):
        able = [one for one in rest if one.kind.from_cholesky]
        rest = [one for one in rest if not one.kind.from_cholesky]
        yield from _one_for(matrix, "Cholesky", able)
    kinds: dict[tuple[str, bool, tuple[object, ...]], list[_Found]] = defaultdict(list)
    for one in rest:
        kind = one.kind.factorisation
        assert one.matrix is not None
        transposed = kind in _ONE_WAY and one.matrix.transposed
        kinds[kind, transposed, _variant(one.work.node)].append(one)
    for (kind, *_), members in kinds.items():
        yield from _one_for(matrix, kind, members)


def _variant(node: Apply[Any]) -> tuple[object, ...]:
    """Return what makes the factorisation of ``node`` another than others of its kind."""
    core = _core(node.op)
    if type(core) is QR:
        # The triangle and the matrices of "economic" are parts of those of "full"; "raw" gives
        # reflectors, which are not.
        return core.pivoting, core.mode == "raw"
    if type(core) is Schur:
        return core.output, core.sort
    return ()


def _one_for(matrix: SharedMatrix, kind: str, members: Sequence[_Found]) -> Iterator[Factorisation]:
    if len(members) > 1:
        # Who takes a matrix to be symmetric does not take it to be positive definite.
        able = [m for m in members if kind != "Cholesky" or m.kind.factorisation == kind]
        supposes = next((one.work for one in able if one.kind.supposes), None)
        yield Factorisation(kind, matrix, tuple(one.work for one in members), supposes)


def _repeated(found: Sequence[_Found]) -> tuple[tuple[MatrixWork, ...], ...]:
    groups: dict[Term | frozenset[tuple[Matrix, Matrix]], list[MatrixWork]] = defaultdict(list)
    for one in found:
        node = one.work.node
        if one.kind is _PRODUCT:
            left, right = (
                one.values.matrix(node.inputs[at]) for at in _FACTORS[type(_core(node.op))]
            )
            # The transpose of a product is that of the transposes, the other way round.
            groups[frozenset({(left, right), (right.flipped(), left.flipped())})].append(one.work)
        else:
            groups[one.values.of(node.outputs[0])].append(one.work)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _inverse_products(found: Sequence[_Found], values: Values) -> tuple[InverseProduct, ...]:
    inverses: dict[Term, MatrixWork] = {}
    for one in found:
        if type(_core(one.work.node.op)) is MatrixInverse:
            inverses.setdefault(one.values.matrix(one.work.node.outputs[0]).values, one.work)
    if not inverses:
        return ()
    products = []
    for graph in values.walk():
        for node in graph.context.order:
            core = _core(node.op)
            # A Gemv has a form of its own for C.
            for at in _FACTORS.get(Gemv if isinstance(core, Gemv) else type(core), ()):
                inverse = inverses.get(graph.matrix(node.inputs[at]).values)
                if inverse is not None:
                    name = graph.context.name(node)
                    products.append(InverseProduct(inverse, node, name, graph.context.path))
    return tuple(products)


def _first_holders(values: Values, wanted: set[Term]) -> dict[Term, tuple[str, Variable[Any, Any]]]:
    """Return for each term the variable that holds it first, with a name for it."""
    holders: dict[Term, tuple[str, Variable[Any, Any]]] = {}
    for graph in values.walk():
        context = graph.context
        computed = (output for node in context.order for output in node.outputs)
        read = (variable for node in context.order for variable in node.inputs)
        for variable in (*context.fgraph.inputs, *computed, *read):
            value = graph.of(variable)
            if value in wanted and value not in holders:
                holders[value] = (
                    place(context.path, context.variable_name(variable)),
                    variable,
                )
    return holders


# Texts ------------------------------------------------------------------------------------


def _number(n: int | None) -> str:
    return "unknown" if n is None else f"{n:,}"


def _name(work: MatrixWork) -> str:
    return place(work.path, work.name)


def _names(work: Iterable[MatrixWork]) -> list[str]:
    return [_name(one) for one in work]


def _list(work: Sequence[MatrixWork]) -> str:
    shown = ", ".join(_names(work[:SHOWN_LINES]))
    return f"{shown} and {len(work) - SHOWN_LINES:,} more" if len(work) > SHOWN_LINES else shown
