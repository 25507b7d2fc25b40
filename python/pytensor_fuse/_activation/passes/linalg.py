"""The rules of the feature `linalg` in PyTensor's databases, each under its own name."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from pytensor.compile.builders import OpFromGraph
from pytensor.configdefaults import config
from pytensor.graph.rewriting.basic import (
    GraphRewriter,
    MergeOptimizer,
    NodeProcessingGraphRewriter,
    WalkingGraphRewriter,
    node_rewriter,
)
from pytensor.tensor.basic import AllocDiag, ExtractDiag, Eye
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.subtensor import AdvancedSubtensor

from pytensor_fuse._activation.withdrawal import load
from pytensor_fuse._pytensor.patching.patches import SwitchedClass
from pytensor_fuse._pytensor.rewriting.databases import Entry, ListedRewriters
from pytensor_fuse._startup.features import on_now

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# The ops that rules match.
_TRACKED: Final = (
    AdvancedSubtensor,
    AllocDiag,
    Blockwise,
    Dot,
    ExtractDiag,
    Eye,
    OpFromGraph,
    Sum,
)

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


class KnownOps:
    """The graphs whose linkers support the ops of this package, with the tag that shows it.

    PyTensor 3.0 does not tell passes the linker, but linkers exclude passes by their tags.
    Those of JAX, PyTorch and MLX exclude all the tags below, and no other does; Numba's excludes
    some and includes one of its own. So the ops are supported if a pass with one of these tags has
    run.
    """

    TAGS: Final = {
        "in_place": ("fast_run", "inplace"),
        "in_c": ("fast_run", "cxx_only"),
        "with_blas": ("fast_run", "BlasOpt"),
        "in_numba": ("numba",),
    }

    def __init__(self) -> None:
        self._noted: WeakKeyDictionary[FunctionGraph, str] = WeakKeyDictionary()

    def note(self, fgraph: FunctionGraph, by: str | None) -> None:
        """Record the tag that shows support of the ops; None if they are not supported."""
        if by is None:
            self._noted.pop(fgraph, None)
        else:
            self._noted[fgraph] = by

    def may_be_made(self, fgraph: FunctionGraph) -> bool:
        """Whether a rule may add the ops to a graph; Numba needs their implementations."""
        by = self._noted.get(fgraph)
        # Our machine code supports the ops, as in `passes.joins`.
        if by == "in_numba" and "native" not in on_now():
            return load("linalg", "pytensor_fuse._linalg.ops.numba") is not None
        return by is not None


known_ops: Final = KnownOps()


class OpsKnown(GraphRewriter):
    """Records the tag that shows that a graph's linker supports the ops of this package."""

    def __init__(self, by: str | None) -> None:
        self.name = "linalg_ops" if by is None else f"linalg_ops_{by}"
        self.by = by

    def apply(self, fgraph: FunctionGraph) -> None:
        """Record it."""
        known_ops.note(fgraph, self.by)


class RuleKept(GraphRewriter):
    """The class of a registered rule while the feature is off: it changes no graph.

    Parameters
    ----------
    module, rule
        The module and the name of the rule, a node rewriter.
    works_on
        Classes of ops; the rule can only match graphs with at least one of them.
    at
        The classes of the ops of the nodes that the rule is tried on; None for all `_TRACKED`.
        Both are names, and for stacks of matrices the name of the op on single ones.
    makes_ops
        Whether it makes ops of this package, or shapes that are known only at run time,
        and so runs only where these are supported.
    suffix
        A suffix of the rule's name, for a second application at another position.
    """

    def __init__(
        self,
        module: str,
        rule: str,
        works_on: frozenset[str],
        *,
        at: frozenset[str] | None = None,
        makes_ops: bool = False,
        suffix: str = "",
    ) -> None:
        self.name = f"linalg_{rule}{suffix}"
        self.module = f"pytensor_fuse._linalg.{module}"
        self.rule = rule
        self.works_on = works_on
        self.at = at
        self.makes_ops = makes_ops

    def apply(self, fgraph: FunctionGraph) -> Any:
        """Do nothing."""

    @classmethod
    def print_profile(cls, stream: Any, prof: Any, level: int = 0) -> None:
        """Print the profile of a rule as that of a walk; it has none if it changed nothing.

        Profiles may be printed when the feature is off again.
        """
        if prof is not None:
            WalkingGraphRewriter.print_profile(stream, prof, level)


class LinalgRule(RuleKept):
    """Applies a rule to all nodes of a graph, the inner ones first, and to the nodes that it makes.

    Nodes that the rule makes more than once are merged: rules and rewriters look at the readers of
    a variable.
    """

    def apply(self, fgraph: FunctionGraph) -> Any:
        """Load the rule and apply it, if the graph has any work for it."""
        notes = load("linalg", "pytensor_fuse._linalg.notes")
        if notes is None:
            return None
        graph = _contents(fgraph)
        classes = graph.classes
        has_work = graph.has_matrix and not self.works_on.isdisjoint(classes)
        may_run = not (has_work and self.makes_ops) or known_ops.may_be_made(fgraph)
        notes.note_pass(fgraph, self.name, may_run=may_run)
        if not (has_work and may_run) or (self.at is not None and self.at.isdisjoint(classes)):
            return None
        key = self.module, self.rule
        walk = _walks.get(key)
        if walk is None:
            module = load("linalg", self.module)
            if module is None:
                return None
            walk = _Walk(notes.noting(self.name, getattr(module, self.rule)), self.at)
            walk.name = self.name
            _walks[key] = walk
        # What a rule makes gets the lines of what it replaces; its own are of no use, and to look
        # for them takes a quarter of the time.
        with config.change_flags(traceback__limit=0):
            result = walk.apply(fgraph)
        if result is not None:
            MergeOptimizer().apply(fgraph)
        return result


def _is_asked_about(op: Any, at: frozenset[str] | None) -> bool:
    """Whether an op is of the classes of which a rule is asked about the nodes."""
    return isinstance(op, _TRACKED) if at is None else _class_name(op) in at


class _Walk(NodeProcessingGraphRewriter):
    """Applies a rule to nodes of ops of some classes, the inner ones first, and to those it makes.

    As a walk of PyTensor's, which prepares more than most rules look at: most graphs have nothing
    for most rules. What a node rewriter tracks it finds by isinstance, which takes longer, too.
    """

    def __init__(self, rule: Any, at: frozenset[str] | None) -> None:
        super().__init__(
            node_rewriter(None)(rule), ignore_newtrees=False, failure_callback=self.warn_inplace
        )
        # It has the rule's name. A trace counts the tries of the rule's own node rewriter.
        self.answered: Any = node_rewriter(None)(_known_answers_first(rule))
        self.at = at

    def apply(self, fgraph: FunctionGraph) -> Any:
        """Apply the rule, and return what a walk does; None if it has changed nothing."""
        left = deque(_contents(fgraph).asked_about(fgraph, self.at))
        rule: Any = self.node_rewriter
        updater = node = None
        n_changed, n_before = 0, len(fgraph.apply_nodes)
        start, callbacks = perf_counter(), fgraph.execute_callbacks_time

        def add(new: Apply[Any]) -> None:
            if new is not node and _is_asked_about(new.op, self.at):
                left.append(new)

        try:
            while left:
                node = left.popleft()
                if node not in fgraph.apply_nodes:
                    continue
                # If it fails, it is asked again, and whoever is to be told of failures is.
                with suppress(Exception):
                    answer = rule.fn(fgraph, node)
                    if not answer:
                        continue
                    _answers[fgraph] = node, answer
                if updater is None:
                    updater = self.attach_updater(fgraph, add, None, name=self.name)
                n_changed += self.process_node(fgraph, node, self.answered)
        finally:
            _answers.pop(fgraph, None)
            self.detach_updater(fgraph, updater)
        if not n_changed:
            return None
        seconds = perf_counter() - start
        callbacks = fgraph.execute_callbacks_time - callbacks
        sizes = n_before, len(fgraph.apply_nodes)
        return self, n_changed, *sizes, 0.0, seconds, callbacks, self.node_rewriter


# What a rule has answered about a node, which has not changed since.
_answers: WeakKeyDictionary[FunctionGraph, tuple[Apply[Any], Any]] = WeakKeyDictionary()


def _known_answers_first(rule: Any) -> Any:
    """Return a rule that reuses the results for nodes that it has been tried on already."""

    @wraps(rule)
    def answer(fgraph: FunctionGraph, node: Apply[Any]) -> Any:
        known, answered = _answers.pop(fgraph, (None, None))
        return answered if known is node else rule(fgraph, node)

    return answer


# By module and rule. What is registered stays as it was: the cache tells it by all that it holds.
_walks: Final[dict[tuple[str, str], _Walk]] = {}


class _Contents:
    """The properties of a graph that rules look at, and the nodes for which they hold.

    Attributes
    ----------
    nodes
        All of them.
    classes
        The names of the classes of the ops.
    has_matrix
        Whether some variable has two axes or more. No rule has anything to do without one.
    """

    def __init__(self, nodes: set[Apply[Any]], classes: set[str], has_matrix: bool) -> None:
        self.nodes = nodes
        self.classes = classes
        self.has_matrix = has_matrix
        self._order: list[Apply[Any]] | None = None
        self._asked_about: dict[frozenset[str] | None, list[Apply[Any]]] = {}

    def asked_about(self, fgraph: FunctionGraph, at: frozenset[str] | None) -> list[Apply[Any]]:
        """Return the nodes of ops of some classes, each after those that it depends on."""
        found = self._asked_about.get(at)
        if found is None:
            found = [one for one in self.nodes if _is_asked_about(one.op, at)]
            if len(found) > 1:
                if self._order is None:
                    self._order = fgraph.toposort()
                found = [one for one in self._order if _is_asked_about(one.op, at)]
            self._asked_about[at] = found
        return found


# Dozens of passes query the same graph in succession. A compile has few graphs at a time.
_known: WeakKeyDictionary[FunctionGraph, _Contents] = WeakKeyDictionary()
_MANY_GRAPHS: Final = 4


def _contents(fgraph: FunctionGraph) -> _Contents:
    """Return the properties of a graph that rules look at."""
    nodes = fgraph.apply_nodes
    known = _known.get(fgraph)
    if known is not None and known.nodes == nodes:
        return known
    types = {type(node.op) for node in nodes}
    names = {type_.__name__ for type_ in types if type_ is not Blockwise}
    if Blockwise in types:
        names.update(_class_name(n.op) for n in nodes if type(n.op) is Blockwise)
    has_matrix = any(
        getattr(one.type, "ndim", 0) > 1 for n in nodes for one in (*n.inputs, *n.outputs)
    )
    if len(_known) >= _MANY_GRAPHS:
        _known.clear()
    _known[fgraph] = found = _Contents(set(nodes), names, has_matrix)
    return found


def _class_name(op: Any) -> str:
    """Return the name of the class of an op; for stacks of matrices, of the op on single ones."""
    return type(op.core_op if type(op) is Blockwise else op).__name__


_RULES: Final = (
    # Before PyTensor takes the gradient apart, and before the determinant is replaced.
    (0.839, RuleKept("determinants", "gradient_of_log_determinant", _DET, at=_DET)),
    # Before all rules that match lower factors.
    (0.8392, RuleKept("upper_factors", "upper_cholesky", _CHOLESKY, at=_CHOLESKY)),
    (
        0.8393,
        RuleKept("upper_factors", "upper_cholesky_solve", _CHOLESKY_SOLVE, at=_CHOLESKY_SOLVE),
    ),
    # Before the others, which match work on the same matrix.
    (0.840, RuleKept("multiples", "work_on_multiple", _WORK, at=_WORK)),
    # Before an inverse is replaced by parts of a matrix, which hide it.
    (0.8402, RuleKept("undone_inverses", "undone_inverse", _INVERSE, at=_WORK)),
    # Before any rule works on the whole matrix instead of its blocks.
    (0.844, RuleKept("block_gradients", "block_of_gradient", _BLOCKS, makes_ops=True)),
    (
        0.845,
        RuleKept(
            "block_diagonal",
            "product_with_block_diagonal_inverse",
            _BLOCKS,
            at=_DOT,
            makes_ops=True,
        ),
    ),
    (0.846, RuleKept("block_diagonal", "block_diagonal_inverse", _BLOCKS, at=_INVERSE)),
    (0.847, RuleKept("block_diagonal", "block_diagonal_determinant", _BLOCKS, at=_DET)),
    (0.848, RuleKept("block_diagonal", "block_diagonal_solve", _BLOCKS, at=_SOLVE, makes_ops=True)),
    # Before an inverse is computed by solves although only its diagonal is read.
    (
        0.84805,
        RuleKept("triangular_gradients", "diagonal_of_triangular_inverse", _INVERSE, at=_INVERSE),
    ),
    (
        0.8481,
        RuleKept(
            "tridiagonal", "product_with_tridiagonal_inverse", _INVERSE, at=_DOT, makes_ops=True
        ),
    ),
    (0.8482, RuleKept("tridiagonal", "tridiagonal_inverse", _INVERSE, at=_INVERSE, makes_ops=True)),
    (0.8483, RuleKept("tridiagonal", "tridiagonal_determinant", _DET, at=_DET, makes_ops=True)),
    (0.8484, RuleKept("tridiagonal", "tridiagonal_solve", _SOLVE, at=_SOLVE, makes_ops=True)),
    (
        0.84841,
        RuleKept("banded", "product_with_banded_inverse", _INVERSE, at=_DOT, makes_ops=True),
    ),
    (0.84842, RuleKept("banded", "banded_inverse", _INVERSE, at=_INVERSE, makes_ops=True)),
    (0.84843, RuleKept("banded", "banded_determinant", _DET, at=_DET, makes_ops=True)),
    (0.84844, RuleKept("banded", "banded_solve", _SOLVE, at=_SOLVE, makes_ops=True)),
    (
        0.84845,
        RuleKept(
            "triangular_work",
            "cholesky_of_triangular_product",
            _CHOLESKY,
            at=_CHOLESKY,
        ),
    ),
    (
        0.84846,
        RuleKept("triangular_gradients", "product_that_cancels_inverse", _INVERSE, at=_DOT),
    ),
    (0.84847, RuleKept("triangular_work", "product_with_triangular_inverse", _INVERSE, at=_DOT)),
    (0.84848, RuleKept("triangular_work", "triangular_inverse", _INVERSE, at=_INVERSE)),
    (0.84849, RuleKept("triangular_work", "triangular_determinant", _DET, at=_DET)),
    (0.848495, RuleKept("triangular_work", "triangular_solve", _SOLVE, at=_SOLVE)),
    (0.8485, RuleKept("diagonal_gradients", "diagonal_of_gradient", _OF_DIAGONALS)),
    (
        0.84855,
        RuleKept(
            "diagonal_gradients",
            "gradient_of_diagonal_matrix",
            _WORK | _CHOLESKY,
            at=frozenset({"OpFromGraph"}),
        ),
    ),
    (0.8486, RuleKept("toeplitz", "work_on_toeplitz_matrix", _WORK, at=_WORK, makes_ops=True)),
    # Before PyTensor rearranges the parts of a matrix, and makes a transpose of transposes.
    (0.85, RuleKept("definite_work", "work_on_definite_matrix", _WORK, at=_WORK)),
    # PyTensor has a rule of its own in `canonicalize`, which overflows.
    (0.950, RuleKept("kronecker", "kronecker_determinant", _KRONECKER, at=_DET)),
    # Again, for nodes that `canonicalize` has brought together.
    (
        1.409,
        RuleKept("undone_inverses", "undone_inverse", _INVERSE, at=_WORK, suffix="_of_rest"),
    ),
    # Before `stabilize`, which turns products with an inverse into solves, and solves into
    # factorizations. The uses of an inverse are visible only until then.
    (1.410, RuleKept("structured_sums", "product_with_structured_sum", _DOT, at=_DOT)),
    (1.411, RuleKept("structured_sums", "diagonal_of_structured_sum", _DIAGONALS, at=_DIAGONALS)),
    (1.412, RuleKept("structured_sums", "sum_of_structured_product", _SUM, at=_SUM)),
    (1.413, RuleKept("woodbury", "woodbury_solve", _SOLVE, at=_SOLVE)),
    (1.414, RuleKept("woodbury", "woodbury_inverse", _INVERSE, at=_INVERSE)),
    (1.415, RuleKept("woodbury", "determinant_lemma", _DET, at=_DET)),
    (1.4155, RuleKept("kronecker_gradients", "kronecker_gradient", _KRONECKER)),
    (1.416, RuleKept("kronecker", "kronecker_solve", _KRONECKER, at=_SOLVE)),
    (1.417, RuleKept("kronecker", "kronecker_times_matrix", _KRONECKER, at=_DOT)),
    (1.418, RuleKept("kronecker", "shifted_kronecker_solve", _KRONECKER, at=_SOLVE)),
    (1.419, RuleKept("kronecker", "shifted_kronecker_determinant", _KRONECKER, at=_DET)),
    (1.420, RuleKept("kronecker", "kronecker_inverse", _KRONECKER, at=_INVERSE)),
    # It changes nothing.
    (1.421, RuleKept("unserved", "note_why_unserved", _WORK | _CHOLESKY, at=_WORK | _CHOLESKY)),
    # After `stabilize` has turned inverses into solves, before matrix products are ordered and
    # become BLAS calls. Products with an inverse are solves by then, and triangles still have
    # their masks.
    (1.549, RuleKept("outer_sums", "sum_of_outer_products", _SOLVES, at=_SUM)),
    (1.550, RuleKept("low_rank", "solve_of_outer_product", _SOLVES, at=_SOLVES)),
    (1.551, RuleKept("low_rank", "solve_of_thin_product", _SOLVES, at=_SOLVES)),
    (
        1.552,
        RuleKept("cholesky_gradient", "cholesky_gradient", _CHOLESKY, at=_TRIANGULAR),
    ),
    (
        1.5525,
        RuleKept("half_solves", "quadratic_forms_from_half_solve", _FACTORED, at=_FACTORED),
    ),
    (1.553, RuleKept("low_rank", "product_with_outer_product", _DOT, at=_DOT)),
    (1.554, RuleKept("low_rank", "diagonal_of_product", _DIAGONAL, at=_DIAGONAL)),
    (
        1.555,
        RuleKept(
            "inverses", "inverse_from_cholesky", _CHOLESKY_SOLVE, at=_CHOLESKY_SOLVE, makes_ops=True
        ),
    ),
    (
        1.556,
        RuleKept("inverses", "inverse_of_factorized_matrix", _INVERSE, at=_INVERSE, makes_ops=True),
    ),
    (1.5565, RuleKept("inverses", "determinant_of_factorized_matrix", _DET, at=_DET)),
    # Such a triangle is made by subtracting a diagonal.
    (1.557, RuleKept("sums", "sum_of_triangle", _ALLOC_DIAG, at=_SUM)),
    (1.5575, RuleKept("sums", "triangle_of_symmetric_matrix", _CHOLESKY, at=_ALLOC_DIAG)),
    (1.558, RuleKept("sums", "sum_of_diagonal_matrix", _DIAGONAL_MATRICES, at=_SUM)),
    # After `specialize`, which merges pairs into solves, and has rules for identities.
    (
        2.91,
        RuleKept("shared_solves", "solve_from_forward_solve", _CHOLESKY_SOLVE, at=_CHOLESKY_SOLVE),
    ),
    (
        2.92,
        RuleKept(
            "diagonal_terms", "diagonal_added_in_place", _DIAGONAL_MATRICES, at=_DIAGONAL_MATRICES
        ),
    ),
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
