"""The rules of the feature `linalg` as PyTensor's databases hold them, each under its own name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.graph.rewriting.basic import GraphRewriter, in2out, node_rewriter
from pytensor.tensor.basic import ExtractDiag
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.math import Dot

from pytensor_fuse._activation.withdrawal import load
from pytensor_fuse._pytensor.databases import Entry, ListedRewriters
from pytensor_fuse._pytensor.patches import SwitchedClass

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph

# The ops that rules ask about.
_TRACKED: Final = (Blockwise, Dot, ExtractDiag)

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
    """Applies a rule to all nodes of a graph, the inner ones first, and to those it makes."""

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
        return self._pass.apply(fgraph)


def _class_name(op: Any) -> str:
    return type(op.core_op if isinstance(op, Blockwise) else op).__name__


# Before PyTensor rearranges what a matrix is made of, and has a transpose made of transposes.
_FIRST: Final = (
    (
        0.85,
        RuleKept(
            "definite_work",
            "work_on_definite_matrix",
            frozenset({"Solve", "MatrixInverse", "Det"}),
        ),
    ),
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


def listed_rules() -> ListedRewriters:
    """Return the patch that registers the rules."""
    tags = ("RuleKept", "fast_run", "linalg")
    return ListedRewriters(
        [
            *(Entry(rule, position, tags) for position, rule in (*_FIRST, *_RULES)),
            *(Entry(rule, position, (*tags, "inplace")) for position, rule in _RULES_WITH_OPS),
        ]
    )


def switched_rules() -> SwitchedClass:
    """Return the patch by which those follow who got the rules from a query."""
    return SwitchedClass(
        lambda: [rule for _, rule in (*_FIRST, *_RULES, *_RULES_WITH_OPS)], {RuleKept: LinalgRule}
    )
