"""Merger of equal nodes and constants: pending look-ups, plans, and their edits.

Edits of the graph do not update the table: its answers are checked against the graph. Its keys
hold the variables, so that no other object can get the id of one of them.

While it plans, the merger identifies each variable with its replacement, so that nodes whose inputs
will be the same are found equal. Nodes that are equal in this sense may all be replaced at once:
since equal nodes have equal inputs, a cycle among the remaining nodes would imply an infinite
descent in the original graph.

The first of several equal nodes to be looked up stays: nodes that were there at the last pass come
first, then the others in the order of their import. However, if the static types of their outputs
differ, the node with the more specific types stays. Constants are equal if their types are equal
and their data are, bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor.compile.aliasing import Supervisor
from pytensor.graph.basic import AtomicVariable
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import Feature, ReplaceValidate
from pytensor.graph.fg import Output
from pytensor.graph.utils import InconsistencyError

from pytensor_fuse._core import MergeTable, in_order
from pytensor_fuse._identity.plain_ops import PLAIN_OPS
from pytensor_fuse._merging.kernel_outputs import KernelComparisons
from pytensor_fuse._merging.numbers import Numbers
from pytensor_fuse._merging.rules import MergeRules
from pytensor_fuse._pytensor.compat.versions import INPLACE_VALIDATORS
from pytensor_fuse._pytensor.graphs.edits import Listeners, replace_all, report
from pytensor_fuse._pytensor.graphs.features import features_of, has_destroyers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.type import Type

    from pytensor_fuse._core import MergePlan

    Node = Apply[Any]
    Var = Variable[Any, Any]

REASON = "MergeOptimizer"

# These refuse only nodes that overwrite their inputs. (`ReplaceValidate` also refuses nodes that
# come back; merging imports none.)
_INPLACE_VALIDATORS = {
    DestroyHandler,
    ReplaceValidate,
    Supervisor,
    *INPLACE_VALIDATORS,
}


@dataclass
class Tally:
    """Counts of a pass."""

    n_refused: int = 0
    n_merged: int = 0
    """Variables replaced, constants among them."""
    n_constants: int = 0

    def add(self, replacements: Iterable[tuple[Var, Var]]) -> None:
        """Count replacements."""
        for old, _ in replacements:
            self.n_merged += 1
            self.n_constants += old.owner is None


class Merger:
    """Merges the nodes of one graph that are new or changed since the last pass.

    Parameters
    ----------
    fgraph
        The graph, none of whose nodes has been looked up.
    listener
        The feature that puts new and changed nodes of ``fgraph`` into `pending`.

    Attributes
    ----------
    pending
        The nodes to be looked up, in order.
    kernels
        The schedule of comparisons of kernel outputs.
    """

    def __init__(self, fgraph: FunctionGraph, listener: Feature) -> None:
        self._fgraph = fgraph
        self._listener = listener
        roots = [variable.owner for variable in fgraph.outputs]
        self.pending: dict[Node, None] = dict.fromkeys(in_order(roots, fgraph.apply_nodes))
        self.kernels = KernelComparisons()
        self._table = MergeTable(PLAIN_OPS, Output)
        self._rules = MergeRules(fgraph)
        self._max_table_size = _max_table_size(len(self.pending))
        self._one_at_a_time = False
        self._listeners: Listeners | None = None
        self._has_other_validators = False

    def merge(self) -> Tally:
        """Merge the new and changed nodes, and those that become equal by this.

        The expected time is in proportion to the inputs of those nodes and to the changes.

        Raises
        ------
        Exception
            Any exception of a feature of the graph. Earlier merges stay, and none is partial.
        """
        tally = Tally()
        while self.pending:
            one_at_a_time = self._one_at_a_time
            plan = self.plan(one_at_a_time=one_at_a_time)
            if plan.replacements and not one_at_a_time and self._can_be_refused():
                one_at_a_time = True
                self._look_up_again(plan)
                plan = self.plan(one_at_a_time=True)
            incomparable = plan.incomparable
            try:
                if plan.replacements and one_at_a_time:
                    self._replace_one(plan, tally)
                elif plan.replacements:
                    self._replace_all(plan, tally)
                while incomparable:
                    self._replace_incomparable(*incomparable[0], tally)
                    del incomparable[0]
            except BaseException:
                # The table considers them done.
                self.pending.update(dict.fromkeys(node for node, _ in incomparable))
                raise
        self._rules.forget_refused()
        if len(self._table) > self._max_table_size:
            self.tidy()
        return tally

    def plan(self, *, one_at_a_time: bool) -> MergePlan:
        """Look up the pending nodes, and all readers of variables that will be replaced.

        ``one_at_a_time`` requests a single merge; the nodes after it stay pending.
        """
        pending, self.pending = self.pending, {}
        try:
            plan = self._table.look_up(self._rules, self._fgraph, pending, one_at_a_time)
        except BaseException:
            self.pending = pending | self.pending
            raise
        # Comparisons of ops run third-party code, which may change this graph.
        self.pending = dict.fromkeys(plan.queue[plan.n_looked_up :]) | self.pending
        self.kernels.note(plan.n_looked_up, met_kernels=plan.met_kernels)
        return plan

    def tidy(self) -> None:
        """Drop the table's entries of nodes and constants that are no longer in the graph."""
        before, self._rules.numbers = self._rules.numbers, Numbers()
        try:
            self._table.tidy(self._rules, self._fgraph)
        except BaseException:
            self._rules.numbers = before
            raise
        # This amortizes the work over the look-ups since the last time.
        self._max_table_size = _max_table_size(len(self._table))

    def look_up_users(self, variable: Var) -> None:
        """Make the nodes pending whose look-up can merge ``variable``."""
        nodes = (
            [variable.owner] if variable.owner else [c for c, _ in self._fgraph.clients[variable]]
        )
        self.pending.update(dict.fromkeys(nodes))

    def find_constant(self, type_: Type[Any], data: object) -> Var | None:
        """Return the constant of the graph that stands for this type and data, if there is one."""
        variables = self._fgraph.variables
        for node in self.pending:
            for variable in node.inputs:
                if isinstance(variable, AtomicVariable) and variable in variables:
                    self._table.representative(self._rules, self._fgraph, variable)
        number = self._rules.numbers.find_constant(type_, data)
        constant = None if number is None else self._table.constant(number)
        return constant if constant in variables else None

    def _look_up_again(self, plan: MergePlan) -> None:
        """Put the nodes that were looked up for ``plan`` back at the front of `pending`."""
        self.pending = dict.fromkeys(plan.queue) | self.pending

    def _can_be_refused(self) -> bool:
        """Return whether validation may refuse a graph in which equal nodes are merged."""
        listeners = self._listeners
        if listeners is None or not listeners.are_current():
            # Without our listener: an edit of all merges changes only nodes that have been looked
            # up with their new inputs.
            self._listeners = Listeners(self._fgraph, but=self._listener)
            self._has_other_validators = any(
                type(feature).on_validate is not Feature.on_validate
                and type(feature) not in _INPLACE_VALIDATORS
                for feature in features_of(self._fgraph)
            )
        return self._has_other_validators or has_destroyers(self._fgraph)

    def _replace_all(self, plan: MergePlan, tally: Tally) -> None:
        """Make all merges of a plan in one edit; none of them can be refused."""
        replacements, dying = plan.replacements, _dying_in_order(plan)
        try:
            replace_all(
                self._fgraph,
                [],
                replacements,
                dying,
                REASON,
                validate=False,
                tell=self._listeners,
            )
        except BaseException as error:
            # The graph is unchanged. Merging one by one isolates the culprit and makes the others.
            self._one_at_a_time = True
            self._look_up_again(plan)
            if not isinstance(error, Exception):
                raise
            return
        tally.add(replacements)
        report(replacements, REASON)
        if self.pending:
            # The listener was notified all the same, of nodes that the plan covers.
            done = set(plan.queue)
            self.pending = {node: None for node in self.pending if node not in done}

    def _replace_one(self, plan: MergePlan, tally: Tally) -> None:
        """Make the only merge of a plan, which features may refuse."""
        replacements, dying = plan.replacements, _dying_in_order(plan)
        try:
            replace_all(self._fgraph, [], replacements, dying, REASON, validate=bool(dying))
        except BaseException as error:
            if not dying or not isinstance(error, InconsistencyError):
                self._look_up_again(plan)
                raise
            self.pending.update(dict.fromkeys(dying))
            self._rules.refuse(plan.dying)
            tally.n_refused += 1
            return
        tally.add(replacements)
        report(replacements, REASON)

    def _replace_incomparable(self, node: Node, other: Node, tally: Tally) -> None:
        """Merge equal nodes when neither has the more specific type in all outputs."""
        apply_nodes = self._fgraph.apply_nodes
        if not (node in apply_nodes and other in apply_nodes and node.inputs == other.inputs):
            self.pending[node] = None
            return
        pairs = []
        for old, new in zip(node.outputs, other.outputs, strict=True):
            if old.type.is_super(new.type):
                pair = old, new
            elif new.type.is_super(old.type):
                pair = new, old
            else:
                pair = old, old.type.convert_variable(new)
            if self._fgraph.clients[pair[0]]:
                pairs.append(pair)
        try:
            self._fgraph.replace_all_validate(pairs, reason=REASON, verbose=False)
        except InconsistencyError:
            tally.n_refused += 1
            self._rules.refuse([(node, other)])
            return
        tally.add(pairs)
        report(pairs, REASON)


def _dying_in_order(plan: MergePlan) -> list[Node]:
    dying = [node for node, _ in plan.dying]
    return in_order(dying, set(dying)) if len(dying) > 1 else dying


def _max_table_size(n_nodes: int) -> int:
    """Return the size of a table beyond which the entries of removed nodes are dropped."""
    return 1000 + 4 * n_nodes
