"""Kinds of matrix ops: the input that they factorize or solve with, and how."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.compile.ops import FromFunctionOp
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

from pytensor_fuse._audit.context.values import is_of_known_class, passes
from pytensor_fuse._linalg.ops.cholesky_inverse import CholeskyInverse
from pytensor_fuse._linalg.ops.lu_inverse import LUInverse

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op


class MatrixPurpose(Enum):
    """The purpose of a node. The value is a word for people."""

    FACTORIZATION = "factorized"
    SOLVE = "solve"
    INVERSE = "inverse"
    DETERMINANT = "determinant"
    PRODUCT = "product with its factor or inverse"
    OTHER = "other work"


class MatrixKind(NamedTuple):
    """The kind of an op on matrices.

    Attributes
    ----------
    matrix
        The index of the input with the matrix that it factorizes or solves with; None for products.
    factorization
        The kind of the factorization that it computes, if any.
    supposes
        Whether the result is only correct for a positive definite, or symmetric, matrix.
    from_cholesky
        Whether it can use an existing Cholesky factorization.
    """

    matrix: int | None
    factorization: str = ""
    supposes: bool = False
    from_cholesky: bool = False


PRODUCT = MatrixKind(None)
_OTHER = MatrixKind(0)
_CHOLESKY = MatrixKind(0, "Cholesky", supposes=True, from_cholesky=True)
_LU = MatrixKind(0, "LU")
_CHOLESKY_OR_LU = MatrixKind(0, "LU", from_cholesky=True)
_SVD = MatrixKind(0, "SVD")
_SYMMETRIC = MatrixKind(0, "symmetric eigenvalue", supposes=True)

PRODUCTS: tuple[type[Op], ...] = (Dot, Dot22, Dot22Scalar, Gemm, BatchedDot)
TRIANGULAR: tuple[type[Op], ...] = (SolveTriangular, CholeskySolve)

# By exact class, since a subclass may do anything. None if the kind depends on the op.
_KINDS: dict[type[Op], MatrixKind | None] = {
    Cholesky: _CHOLESKY,
    **dict.fromkeys((Det, SLogDet, MatrixInverse), _CHOLESKY_OR_LU),
    **dict.fromkeys((LU, LUFactor), _LU),
    **dict.fromkeys((SVD, Lstsq), _SVD),
    QR: MatrixKind(0, "QR"),
    Eig: MatrixKind(0, "eigenvalue"),
    Schur: MatrixKind(0, "Schur"),
    **dict.fromkeys((Expm, QZ, TRSYL, TensorInv, TensorSolve, *TRIANGULAR), _OTHER),
    **dict.fromkeys((CholeskyInverse, LUInverse), _OTHER),
    **dict.fromkeys(PRODUCTS, PRODUCT),
    **dict.fromkeys((Eigh, Eigvalsh, MatrixPinv, MvNormalRV, Solve), None),
}

_PURPOSES: dict[type[Op], MatrixPurpose] = {
    **dict.fromkeys(
        (Cholesky, LU, LUFactor, QR, Eig, Eigh, Eigvalsh, Schur, QZ, SVD),
        MatrixPurpose.FACTORIZATION,
    ),
    **dict.fromkeys((Solve, *TRIANGULAR, Lstsq, TensorSolve), MatrixPurpose.SOLVE),
    **dict.fromkeys(
        (MatrixInverse, MatrixPinv, TensorInv, CholeskyInverse, LUInverse), MatrixPurpose.INVERSE
    ),
    **dict.fromkeys((Det, SLogDet), MatrixPurpose.DETERMINANT),
}

# The indices of the inputs that they multiply.
FACTORS: dict[type[Op], tuple[int, int]] = {
    **dict.fromkeys(PRODUCTS, (0, 1)),
    **dict.fromkeys((Gemm, Gemv), (2, 3)),
}

# Factorizations of a transpose that do not follow from those of the matrix.
ONE_WAY = ("QR", "eigenvalue", "Schur")

# Other ops of these modules are unknown, except for these, which do less than cubic work.
_LINEAR_ALGEBRA = ("pytensor.tensor.blas", "pytensor.tensor.linalg")
_CHEAP = {
    *("BlockDiagonal", "PivotToPermutations"),
    *("LUFactorTridiagonal", "SolveLUFactorTridiagonal"),
    *("CGemv", "CGer", "Gemv", "Ger"),
}


def core_of(op: Op) -> Any:
    """Return the op that works on single matrices."""
    return op.core_op if isinstance(op, Blockwise) else op


def purpose_of(op: Op) -> MatrixPurpose:
    """Return the purpose of an op that works on a matrix."""
    return _PURPOSES.get(type(core_of(op)), MatrixPurpose.OTHER)


def kind_of(node: Apply[Any]) -> MatrixKind | None:
    """Return the kind of a node's work on matrices; None if there is none, or it is unknown."""
    core = core_of(node.op)
    class_ = type(core)
    if class_ is Solve:
        if core.assume_a in ("tridiagonal", "banded"):
            # The work grows with the length, and with the square of the bandwidth.
            return None
        kinds = {"pos": _CHOLESKY, "gen": _CHOLESKY_OR_LU}
        return kinds.get(core.assume_a, _CHOLESKY_OR_LU._replace(supposes=True))
    if class_ is MatrixPinv:
        return _SYMMETRIC if core.hermitian else _SVD
    if class_ in (Eigh, Eigvalsh):
        # With two matrices, it is a generalized eigenvalue problem.
        return _SYMMETRIC if len(node.inputs) == 1 else _OTHER
    if class_ is MvNormalRV:
        method = {"cholesky": _CHOLESKY, "svd": _SVD, "eigh": _SYMMETRIC}[core.method]
        return method._replace(matrix=3, from_cholesky=core.method == "cholesky")
    return _KINDS.get(class_)


def why_unknown(core: Op, *, has_graph: bool) -> str | None:
    """Say why it is unknown whether an op works on matrices; None if it is known."""
    class_ = type(core)
    if class_ in _KINDS or has_graph:
        return None
    if isinstance(core, FromFunctionOp):
        return "it calls a Python function"
    base = next((known for known in _KINDS if isinstance(core, known)), None)
    if base is not None:
        return f"{class_.__qualname__} is a kind of {base.__name__} that is not known"
    if class_.__module__.startswith(_LINEAR_ALGEBRA):
        return None if class_.__name__ in _CHEAP else f"{class_.__qualname__} is not known"
    if is_of_known_class(core) or passes(core):
        return None
    return f"{class_.__qualname__} of {class_.__module__} is not known"
