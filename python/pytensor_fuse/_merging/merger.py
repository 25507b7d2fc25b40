"""Merging equal nodes and constants of a graph: what is to be looked up, plans, and their edits.

The table is never kept up to date: what it gives is checked against the graph. Its keys hold the
variables, so that no other object can come to have the identity of one of them.

While it plans, it takes each variable for the one that will replace it, so that nodes whose inputs
will be the same are found equal. Nodes that are equal in this sense may all be replaced at once:
since equal nodes have equal inputs, a cycle among the nodes that stay would be an infinite descent
in the graph before.

Of equal nodes, the one that is looked up first stays: one that was there at the last pass, then the
one imported first. But where the static type of an output says more than that of another, the one
that says more stays. Constants are equal if their types are and their data are bit for bit.
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
from pytensor_fuse._identity.attributes import PLAIN_OPS
from pytensor_fuse._merging.kernel_outputs import KernelComparisons
from pytensor_fuse._merging.numbers import Numbers
from pytensor_fuse._merging.rules import MergeRules
from pytensor_fuse._pytensor.edits import Listeners, replace_all, report
from pytensor_fuse._pytensor.features import features_of, has_destroyers
from pytensor_fuse._pytensor.versions import INPLACE_VALIDATORS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.type import Type

    from pytensor_fuse._core import MergePlan

    Node = Apply[Any]
    Var = Variable[Any, Any]

REASON = "MergeOptimizer"

# What they refuse in a graph are nodes that write over their inputs. (`ReplaceValidate` refuses
# nodes that come back, too; merging imports none.)
_INPLACE_VALIDATORS = {
    DestroyHandler,
    ReplaceValidate,
    Supervisor,
    *INPLACE_VALIDATORS,
}


@dataclass
class Tally:
    """What a pass did."""

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
    """Merges the nodes of one graph that came or changed since the last time.

    Parameters
    ----------
    fgraph
        The graph, of which nothing has been looked up.
    listener
        The feature that puts nodes of ``fgraph`` that come or change into `pending`.

    Attributes
    ----------
    pending
        The nodes to be looked up, in order.
    kernels
        When the outputs of kernels are to be compared.
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
        """Merge the nodes that came or changed, and those that this makes equal.

        Takes expected time in proportion to the inputs of those nodes and to what merging changes.

        Raises
        ------
        Exception
            Whatever a feature of the graph raises. What was merged before stays so, and nothing is
            half merged.
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
                # The table takes them for done.
                self.pending.update(dict.fromkeys(node for node, _ in incomparable))
                raise
        self._rules.forget_refused()
        if len(self._table) > self._max_table_size:
            self.tidy()
        return tally

    def plan(self, *, one_at_a_time: bool) -> MergePlan:
        """Look up what is pending, and all that reads what will be replaced.

        ``one_at_a_time`` asks for a single merge; what comes after it stays pending.
        """
        pending, self.pending = self.pending, {}
        try:
            plan = self._table.look_up(self._rules, self._fgraph, pending, one_at_a_time)
        except BaseException:
            self.pending = pending | self.pending
            raise
        # An op that is compared may do anything, also to this graph.
        self.pending = dict.fromkeys(plan.waiting) | self.pending
        self.kernels.note(plan.n_looked_up, met_kernels=plan.met_kernels)
        return plan

    def tidy(self) -> None:
        """Drop what the table says about nodes and constants that are gone."""
        before, self._rules.numbers = self._rules.numbers, Numbers()
        try:
            self._table.tidy(self._rules, self._fgraph)
        except BaseException:
            self._rules.numbers = before
            raise
        # The work is in proportion to what has been looked up since the last time.
        self._max_table_size = _max_table_size(len(self._table))

    def look_up_users(self, variable: Var) -> None:
        """Have looked up again what has to do with the merging of ``variable``."""
        nodes = (
            [variable.owner] if variable.owner else [c for c, _ in self._fgraph.clients[variable]]
        )
        self.pending.update(dict.fromkeys(nodes))

    def find_constant(self, type_: Type[Any], data: object) -> Var | None:
        """Return the constant of the graph that those with this type and data are merged with."""
        variables = self._fgraph.variables
        for node in self.pending:
            for variable in node.inputs:
                if isinstance(variable, AtomicVariable) and variable in variables:
                    self._table.representative(self._rules, self._fgraph, variable)
        number = self._rules.numbers.find_constant(type_, data)
        constant = None if number is None else self._table.constant(number)
        return constant if constant in variables else None

    def _look_up_again(self, plan: MergePlan) -> None:
        """Have looked up again, and first, what was looked up for ``plan``."""
        self.pending = dict.fromkeys(self._table.queue(plan)) | self.pending

    def _can_be_refused(self) -> bool:
        """Whether validation may refuse a graph in which equal nodes are merged."""
        listeners = self._listeners
        if listeners is None or not listeners.are_current():
            # What an edit of all merges changes has been looked up, with the inputs that it gets.
            self._listeners = Listeners(self._fgraph, but=self._listener)
            self._has_other_validators = any(
                type(feature).on_validate is not Feature.on_validate
                and type(feature) not in _INPLACE_VALIDATORS
                for feature in features_of(self._fgraph)
            )
        return self._has_other_validators or has_destroyers(self._fgraph)

    def _replace_all(self, plan: MergePlan, tally: Tally) -> None:
        """Do all merges of a plan in one edit, none of which can be refused."""
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
            # The graph is as it was. One by one shows which merge it is, and does the others.
            self._one_at_a_time = True
            self._look_up_again(plan)
            if not isinstance(error, Exception):
                raise
            return
        tally.add(replacements)
        report(replacements, REASON)
        if self.pending:
            # Where the listener is told all the same.
            done = set(self._table.queue(plan))
            self.pending = {node: None for node in self.pending if node not in done}

    def _replace_one(self, plan: MergePlan, tally: Tally) -> None:
        """Do the one merge of a plan, which features may refuse."""
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
        """Merge equal nodes neither of which has the more specific type in all outputs."""
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
    """Return how many entries a table may have before those of nodes that are gone are dropped."""
    return 1000 + 4 * n_nodes
