"""The rules of the feature `linalg` as PyTensor's databases hold them, each under its own name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.compile.builders import OpFromGraph
from pytensor.graph.rewriting.basic import (
    GraphRewriter,
    MergeOptimizer,
    in2out,
    node_rewriter,
)
from pytensor.tensor.basic import ExtractDiag
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.math import Dot, Sum

from pytensor_fuse._activation.withdrawal import load
from pytensor_fuse._pytensor.databases import Entry, ListedRewriters
from pytensor_fuse._pytensor.patches import SwitchedClass

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph

# The ops that rules ask about.
_TRACKED: Final = (Blockwise, Dot, ExtractDiag, OpFromGraph, Sum)

_SOLVES: Final = frozenset({"SolveTriangular", "CholeskySolve", "Solve"})


class RuleKept(GraphRewriter):
    """What is registered while the feature is off: it leaves every graph alone.

    Parameters
    ----------
    module, rule
        Where the rule, a node rewriter, is, and what it is called.
    works_on
        The classes of the ops, one of which a graph must have for the rule to find anything.
    """

    def __init__(self, module: str, rule: str, works_on: frozenset[str]) -> None:
        self.name = f"linalg_{rule}"
        self.module = f"pytensor_fuse._linalg.{module}"
        self.rule = rule
        self.works_on = works_on
        self._pass: GraphRewriter | None = None

    def apply(self, fgraph: FunctionGraph) -> Any:
        """Do nothing."""


class LinalgRule(RuleKept):
    """Applies a rule to all nodes of a graph, the inner ones first, and to those it makes.

    What the rule makes more than once is merged: rules and rewriters ask who uses a variable.
    """

    def apply(self, fgraph: FunctionGraph) -> Any:
        """Load the rule and apply it, if the graph has any work for it."""
        if not any(_class_name(node.op) in self.works_on for node in fgraph.apply_nodes):
            return None
        if self._pass is None:
            module = load("linalg", self.module)
            if module is None:
                return None
            rule: Any = node_rewriter(_TRACKED)(getattr(module, self.rule))
            self._pass = in2out(rule, name=self.name)
        before = list(fgraph.apply_nodes)
        result = self._pass.apply(fgraph)
        if len(before) != len(fgraph.apply_nodes) or not fgraph.apply_nodes.issuperset(before):
            MergeOptimizer().apply(fgraph)
        return result


def _class_name(op: Any) -> str:
    return type(op.core_op if isinstance(op, Blockwise) else op).__name__


_DIAGONALS: Final = frozenset({"ExtractDiag", "OpFromGraph"})

_KRONECKER: Final = frozenset({"KroneckerProduct"})

# Before `stabilize`, which makes solves of products with an inverse, and factorizations of solves.
# What is needed of an inverse is known while it is still one.
_RULES_OF_STRUCTURE: Final = (
    # PyTensor has its own in `canonicalize`, which overflows.
    (0.950, RuleKept("kronecker", "kronecker_determinant", _KRONECKER)),
    (1.410, RuleKept("structured_sums", "product_with_structured_sum", frozenset({"Dot"}))),
    (1.411, RuleKept("structured_sums", "diagonal_of_structured_sum", _DIAGONALS)),
    (1.412, RuleKept("structured_sums", "sum_of_structured_product", frozenset({"Sum"}))),
    (1.413, RuleKept("woodbury", "woodbury_solve", frozenset({"Solve"}))),
    (1.414, RuleKept("woodbury", "woodbury_inverse", frozenset({"MatrixInverse"}))),
    (1.415, RuleKept("woodbury", "determinant_lemma", frozenset({"Det"}))),
    (1.416, RuleKept("kronecker", "kronecker_solve", _KRONECKER)),
    (1.417, RuleKept("kronecker", "kronecker_times_vector", _KRONECKER)),
    (1.418, RuleKept("kronecker", "shifted_kronecker_solve", _KRONECKER)),
    (1.419, RuleKept("kronecker", "shifted_kronecker_determinant", _KRONECKER)),
)

# After `stabilize` has made solves of inverses, before matrix products are ordered and become BLAS
# calls. What was a product with an inverse is a solve by then, and half of a triangle still is one.
_RULES: Final = (
    (1.550, RuleKept("low_rank", "solve_of_outer_product", _SOLVES)),
    (1.551, RuleKept("low_rank", "solve_of_thin_product", _SOLVES)),
    (1.552, RuleKept("cholesky_gradient", "cholesky_gradient", frozenset({"Cholesky"}))),
    (1.553, RuleKept("low_rank", "product_with_outer_product", frozenset({"Dot"}))),
    (1.554, RuleKept("low_rank", "diagonal_of_product", frozenset({"ExtractDiag"}))),
)

# These make ops of this package. The targets that do not know them are those that do not work in
# place either, and say so by a tag.
_RULES_WITH_OPS: Final = (
    (1.555, RuleKept("inverses", "inverse_from_cholesky", frozenset({"CholeskySolve"}))),
    (1.556, RuleKept("inverses", "inverse_of_factorized_matrix", frozenset({"MatrixInverse"}))),
)

_ALL_RULES: Final = (*_RULES_OF_STRUCTURE, *_RULES, *_RULES_WITH_OPS)


def listed_rules() -> ListedRewriters:
    """Return the patch that registers the rules."""
    tags = ("RuleKept", "fast_run", "linalg")
    return ListedRewriters(
        [
            *(Entry(rule, position, tags) for position, rule in (*_RULES_OF_STRUCTURE, *_RULES)),
            *(Entry(rule, position, (*tags, "inplace")) for position, rule in _RULES_WITH_OPS),
        ]
    )


def switched_rules() -> SwitchedClass:
    """Return the patch by which those follow who got the rules from a query."""
    return SwitchedClass(lambda: [rule for _, rule in _ALL_RULES], {RuleKept: LinalgRule})
