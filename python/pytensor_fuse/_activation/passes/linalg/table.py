"""The rules of linear algebra with their positions among PyTensor's passes."""

from __future__ import annotations

from typing import Any, Final

from pytensor_fuse._activation.passes.linalg.known_ops import KnownOps, OpsKnown
from pytensor_fuse._activation.passes.linalg.rules import LinalgRule, RuleKept
from pytensor_fuse._pytensor.patching.patches import SwitchedClass
from pytensor_fuse._pytensor.rewriting.databases import Entry, ListedRewriters

# Classes of ops, by name.
_SOLVES: Final = frozenset({"SolveTriangular", "CholeskySolve", "Solve"})
_WORK: Final = frozenset({"Solve", "MatrixInverse", "Det"})
_DIAGONALS: Final = frozenset({"ExtractDiag", "OpFromGraph"})
_KRONECKER: Final = frozenset({"KroneckerProduct"})
_BLOCKS: Final = frozenset({"BlockDiagonal"})
_DIAGONAL_MATRICES: Final = frozenset({"Eye", "AllocDiag"})
_ALLOC_DIAG: Final = frozenset({"AllocDiag"})
_DIAGONAL: Final = frozenset({"ExtractDiag"})
_TRIANGULAR: Final = frozenset({"SolveTriangular"})
_FACTORED: Final = frozenset({"SolveTriangular", "CholeskySolve"})
_CHOLESKY: Final = frozenset({"Cholesky"})
_SOLVE: Final = frozenset({"Solve"})
_CHOLESKY_SOLVE: Final = frozenset({"CholeskySolve"})
_INVERSE: Final = frozenset({"MatrixInverse"})
_OF_DIAGONALS: Final = frozenset({"LUFactorTridiagonal", "LUFactorBanded"})
_DET: Final = frozenset({"Det"})
_DOT: Final = frozenset({"Dot"})
_SUM: Final = frozenset({"Sum"})
_GRADIENT: Final = frozenset({"OpFromGraph"})
# All classes that rules match.
_ANY: Final = None


def _listed(
    position: float,
    module: str,
    rule: str,
    works_on: frozenset[str],
    *at: frozenset[str] | None,
    **options: Any,
) -> tuple[float, RuleKept]:
    """Return a rule with its position; by default it is tried on the nodes that it works on."""
    [tried_on] = at or (works_on,)
    return position, RuleKept(module, rule, works_on, at=tried_on, **options)


_RULES: Final = (
    # Before PyTensor takes the gradient apart, and before the determinant is replaced.
    _listed(0.839, "determinants", "gradient_of_log_determinant", _DET),
    # Before all rules that match lower factors.
    _listed(0.8392, "sharing.upper_factors", "upper_cholesky", _CHOLESKY),
    _listed(0.8393, "sharing.upper_factors", "upper_cholesky_solve", _CHOLESKY_SOLVE),
    # Before the others, which match work on the same matrix.
    _listed(0.840, "sharing.multiples", "work_on_multiple", _WORK),
    # Before an inverse is replaced by parts of a matrix, which hide it.
    _listed(0.8402, "sharing.undone_inverses", "undone_inverse", _INVERSE, _WORK),
    # Before any rule works on the whole matrix instead of its blocks.
    _listed(0.844, "gradients.blocks", "block_of_gradient", _BLOCKS, _ANY, makes_ops=True),
    _listed(
        0.845,
        "by_structure.block_diagonal",
        "product_with_block_diagonal_inverse",
        _BLOCKS,
        _DOT,
        makes_ops=True,
    ),
    _listed(0.846, "by_structure.block_diagonal", "block_diagonal_inverse", _BLOCKS, _INVERSE),
    _listed(0.847, "by_structure.block_diagonal", "block_diagonal_determinant", _BLOCKS, _DET),
    _listed(
        0.848,
        "by_structure.block_diagonal",
        "block_diagonal_solve",
        _BLOCKS,
        _SOLVE,
        makes_ops=True,
    ),
    # Before an inverse is computed by solves although only its diagonal is read.
    _listed(0.84805, "gradients.triangles", "diagonal_of_triangular_inverse", _INVERSE),
    _listed(
        0.8481,
        "by_structure.tridiagonal",
        "product_with_tridiagonal_inverse",
        _INVERSE,
        _DOT,
        makes_ops=True,
    ),
    _listed(0.8482, "by_structure.tridiagonal", "tridiagonal_inverse", _INVERSE, makes_ops=True),
    _listed(0.8483, "by_structure.tridiagonal", "tridiagonal_determinant", _DET, makes_ops=True),
    _listed(0.8484, "by_structure.tridiagonal", "tridiagonal_solve", _SOLVE, makes_ops=True),
    _listed(
        0.84841,
        "by_structure.banded",
        "product_with_banded_inverse",
        _INVERSE,
        _DOT,
        makes_ops=True,
    ),
    _listed(0.84842, "by_structure.banded", "banded_inverse", _INVERSE, makes_ops=True),
    _listed(0.84843, "by_structure.banded", "banded_determinant", _DET, makes_ops=True),
    _listed(0.84844, "by_structure.banded", "banded_solve", _SOLVE, makes_ops=True),
    _listed(0.84845, "by_structure.triangular", "cholesky_of_triangular_product", _CHOLESKY),
    _listed(0.84846, "gradients.triangles", "product_that_cancels_inverse", _INVERSE, _DOT),
    _listed(0.84847, "by_structure.triangular", "product_with_triangular_inverse", _INVERSE, _DOT),
    _listed(0.84848, "by_structure.triangular", "triangular_inverse", _INVERSE),
    _listed(0.84849, "by_structure.triangular", "triangular_determinant", _DET),
    _listed(0.848495, "by_structure.triangular", "triangular_solve", _SOLVE),
    _listed(0.8485, "gradients.diagonals", "diagonal_of_gradient", _OF_DIAGONALS, _ANY),
    _listed(
        0.84855, "gradients.diagonals", "gradient_of_diagonal_matrix", _WORK | _CHOLESKY, _GRADIENT
    ),
    _listed(0.8486, "by_structure.toeplitz", "work_on_toeplitz_matrix", _WORK, makes_ops=True),
    # Before PyTensor rearranges the parts of a matrix, and makes a transpose of transposes.
    _listed(0.85, "sharing.definite", "work_on_definite_matrix", _WORK),
    # PyTensor has a rule of its own in `canonicalize`, which overflows.
    _listed(0.950, "by_structure.kronecker", "kronecker_determinant", _KRONECKER, _DET),
    # Again, for nodes that `canonicalize` has brought together.
    _listed(1.409, "sharing.undone_inverses", "undone_inverse", _INVERSE, _WORK, suffix="_of_rest"),
    # Before `stabilize`, which turns products with an inverse into solves, and solves into
    # factorizations. The uses of an inverse are visible only until then.
    _listed(1.410, "by_structure.sums", "product_with_structured_sum", _DOT),
    _listed(1.411, "by_structure.sums", "diagonal_of_structured_sum", _DIAGONALS),
    _listed(1.412, "by_structure.sums", "sum_of_structured_product", _SUM),
    _listed(1.413, "by_structure.woodbury", "woodbury_solve", _SOLVE),
    _listed(1.414, "by_structure.woodbury", "woodbury_inverse", _INVERSE),
    _listed(1.415, "by_structure.woodbury", "determinant_lemma", _DET),
    _listed(1.4155, "gradients.kronecker", "kronecker_gradient", _KRONECKER, _ANY),
    _listed(1.416, "by_structure.kronecker", "kronecker_solve", _KRONECKER, _SOLVE),
    _listed(1.417, "by_structure.kronecker", "kronecker_times_matrix", _KRONECKER, _DOT),
    _listed(1.418, "by_structure.kronecker", "shifted_kronecker_solve", _KRONECKER, _SOLVE),
    _listed(1.419, "by_structure.kronecker", "shifted_kronecker_determinant", _KRONECKER, _DET),
    _listed(1.420, "by_structure.kronecker", "kronecker_inverse", _KRONECKER, _INVERSE),
    # It changes nothing.
    _listed(1.421, "by_structure.unserved", "note_why_unserved", _WORK | _CHOLESKY),
    # After `stabilize` has turned inverses into solves, before matrix products are ordered and
    # become BLAS calls. Products with an inverse are solves by then, and triangles still have
    # their masks.
    _listed(1.549, "products.outer_sums", "sum_of_outer_products", _SOLVES, _SUM),
    _listed(1.550, "products.low_rank", "solve_of_outer_product", _SOLVES),
    _listed(1.551, "products.low_rank", "solve_of_thin_product", _SOLVES),
    _listed(1.552, "gradients.cholesky", "cholesky_gradient", _CHOLESKY, _TRIANGULAR),
    _listed(1.5525, "sharing.half_solves", "quadratic_forms_from_half_solve", _FACTORED),
    _listed(1.553, "products.low_rank", "product_with_outer_product", _DOT),
    _listed(1.554, "products.low_rank", "diagonal_of_product", _DIAGONAL),
    _listed(1.555, "sharing.inverses", "inverse_from_cholesky", _CHOLESKY_SOLVE, makes_ops=True),
    _listed(1.556, "sharing.inverses", "inverse_of_factorized_matrix", _INVERSE, makes_ops=True),
    _listed(1.5565, "sharing.inverses", "determinant_of_factorized_matrix", _DET),
    # The triangle is the result of subtracting a diagonal.
    _listed(1.5575, "products.sums", "triangle_of_symmetric_matrix", _CHOLESKY, _ALLOC_DIAG),
    _listed(1.558, "products.sums", "sum_of_diagonal_matrix", _DIAGONAL_MATRICES, _SUM),
    # After `specialize`, which merges pairs into solves, and has rules for identities.
    _listed(2.91, "sharing.forward_solves", "solve_from_forward_solve", _CHOLESKY_SOLVE),
    _listed(2.92, "products.diagonal_terms", "diagonal_added_in_place", _DIAGONAL_MATRICES),
)

# Before the rules: first a reset, as a graph may be rewritten again; Numba last.
_OPS_UNKNOWN: Final = (0.840, OpsKnown(None))
_OPS_KNOWN: Final = tuple(
    (0.841 + i / 1000, OpsKnown(by), tags) for i, (by, tags) in enumerate(KnownOps.TAGS.items())
)


def listed_rules() -> ListedRewriters:
    """Return the patch that registers the rules, and the passes that record the target."""
    position, unknown = _OPS_UNKNOWN
    return ListedRewriters(
        [
            Entry(unknown, position, (OpsKnown.__name__, "fast_run", "linalg")),
            *(Entry(one, at, (OpsKnown.__name__, *tags, "linalg")) for at, one, tags in _OPS_KNOWN),
            *(Entry(rule, at, (RuleKept.__name__, "fast_run", "linalg")) for at, rule in _RULES),
        ]
    )


def switched_rules() -> SwitchedClass:
    """Return the patch that switches the rules in stored query results, too."""
    return SwitchedClass(lambda: [rule for _, rule in _RULES], {RuleKept: LinalgRule})
