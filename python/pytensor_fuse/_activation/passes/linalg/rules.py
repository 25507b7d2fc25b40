"""Rewriters that apply the rules of linear algebra, each under its own name."""

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

from pytensor_fuse._activation.passes.linalg.known_ops import known_ops
from pytensor_fuse._activation.withdrawal import load

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
        self.module = f"pytensor_fuse._linalg.rules.{module}"
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
        # Replacements get the source lines of the old variables; collecting new ones takes a
        # quarter of the time.
        with config.change_flags(traceback__limit=0):
            result = walk.apply(fgraph)
        if result is not None:
            MergeOptimizer().apply(fgraph)
        return result


def _is_asked_about(op: Any, at: frozenset[str] | None) -> bool:
    """Whether a rule is tried on the nodes of an op."""
    return isinstance(op, _TRACKED) if at is None else _class_name(op) in at


class _Walk(NodeProcessingGraphRewriter):
    """Applies a rule to the nodes of some classes of ops, inner ones first, and to new nodes.

    It does as PyTensor's walks, but prepares less: most graphs have no work for most rules. The
    tracks of a node rewriter would be matched by isinstance, which takes longer.
    """

    def __init__(self, rule: Any, at: frozenset[str] | None) -> None:
        super().__init__(
            node_rewriter(None)(rule), ignore_newtrees=False, failure_callback=self.warn_inplace
        )
        # It has the rule's name. Traces count the tries of the rule's own node rewriter.
        self.answered: Any = node_rewriter(None)(_known_answers_first(rule))
        self.at = at

    def apply(self, fgraph: FunctionGraph) -> Any:
        """Apply the rule, and return the profile of a walk; None if it has changed nothing."""
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
                # A rule that fails is tried again by `process_node`, which reports the failure.
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


# The result of a rule for a node that has not changed since.
_answers: WeakKeyDictionary[FunctionGraph, tuple[Apply[Any], Any]] = WeakKeyDictionary()


def _known_answers_first(rule: Any) -> Any:
    """Return a rule that reuses the results for nodes that it has been tried on already."""

    @wraps(rule)
    def answer(fgraph: FunctionGraph, node: Apply[Any]) -> Any:
        known, answered = _answers.pop(fgraph, (None, None))
        return answered if known is node else rule(fgraph, node)

    return answer


# By module and rule. Registered rewriters do not change: their contents are part of cache keys.
_walks: Final[dict[tuple[str, str], _Walk]] = {}


class _Contents:
    """The properties of a graph that rules look at, and the nodes for which they hold.

    Attributes
    ----------
    nodes
        All nodes.
    classes
        The names of the classes of the ops.
    has_matrix
        Whether some variable has two axes or more, which each rule needs.
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
