"""The pass that strings together increments of parts of one array, without its steps in between.

The gradient with respect to ``x`` of what reads ``x[0]``, ..., ``x[n - 1]`` is a sum of ``n``
arrays of zeros, each with one part incremented. PyTensor makes it one array, incremented ``n``
times: each addition lets go of the increment on top of its inputs, which then are the input of the
next. That is ``n**2 / 2`` replacements in the graph, each of which makes, imports and prunes three
nodes.

Here the same steps are taken with integers, in the same order (`string_together`); what is left of
the nodes that they make, which is in proportion to ``n``, is then put into the graph at once. Tags,
the order of the clients of variables, and that in which features learn of nodes come out as if each
step had been taken. But features are not told of nodes that come and go. So all this is done only
where each feature of the graph is one that is known not to mind; where there is another, PyTensor's
own pass takes its steps.
"""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING, Any

from pytensor.compile.mode import optdb
from pytensor.configdefaults import config
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import ReplaceValidate
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.rewriting.basic import OpToRewriterTracker, WalkingGraphRewriter
from pytensor.graph.traversal import toposort
from pytensor.tensor.math import add
from pytensor.tensor.rewriting.subtensor import local_IncSubtensor_serialize
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.subtensor import AdvancedIncSubtensor, IncSubtensor

from pytensor_fuse._core import GraphError, string_together
from pytensor_fuse._pytensor.graphs.features import has_destroyers, minds_no_steps
from pytensor_fuse._pytensor.patching.drop_ins import BoundDropIn
from pytensor_fuse._pytensor.rewriting.node_trackers import LOOKUP

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable

    Node = Apply[Any]
    Var = Variable[Any, Any]
    from pytensor_fuse._pytensor.patching.patches import Patch

_clock = time.perf_counter
_REPLACED_IN = {
    name: vars(FunctionGraph)[name] for name in ("replace", "replace_all", "change_node_input")
}


def the_pass() -> WalkingGraphRewriter:
    """Return PyTensor's pass."""
    found: WalkingGraphRewriter = optdb["pre_local_IncSubtensor_serialize"]
    return found


def apply(self: Any, fgraph: FunctionGraph, start_from: Any = None) -> Any:
    """Do as `WalkingGraphRewriter.apply` does for this pass."""
    if start_from is not None or not _may_skip_steps(self, fgraph):
        return WalkingGraphRewriter.apply(self, fgraph, start_from)
    t0 = _clock()
    nb_nodes_start = len(fgraph.apply_nodes)
    callback_before = fgraph.execute_callbacks_time
    nodes = list(toposort(fgraph.outputs))
    io_t = _clock() - t0
    t0 = _clock()
    steps = _Steps(fgraph)
    try:
        steps.take(nodes)
        steps.make_nodes()
    except _UnknownError:
        return WalkingGraphRewriter.apply(self, fgraph, start_from)
    if steps.n_taken:
        steps.edit(self.node_rewriter)
    loop_t = _clock() - t0
    return (
        self,
        steps.n_taken,
        nb_nodes_start,
        len(fgraph.apply_nodes),
        io_t,
        loop_t,
        fgraph.execute_callbacks_time - callback_before,
        self.node_rewriter,
    )


def _may_skip_steps(rewriter: Any, fgraph: FunctionGraph) -> bool:
    """Whether nobody listens to each step, and each would be PyTensor's."""
    return (
        type(rewriter) is WalkingGraphRewriter
        and rewriter.node_rewriter is local_IncSubtensor_serialize
        and rewriter.order == "in_to_out"
        and not rewriter.ignore_newtrees
        and not {"process_node", "attach_updater"} & vars(rewriter).keys()
        and "transform" not in vars(local_IncSubtensor_serialize)
        # Somebody counts what is tried.
        and LOOKUP not in vars(OpToRewriterTracker)
        and type(fgraph) is FunctionGraph
        and not _REPLACED_IN.keys() & vars(fgraph).keys()
        and all(vars(FunctionGraph)[name] is stock for name, stock in _REPLACED_IN.items())
        and not has_destroyers(fgraph)
        and all(minds_no_steps(feature) for feature in fgraph._features)
        and any(type(feature) is ReplaceValidate for feature in fgraph._features)
        and not any(
            isinstance(feature, ReplaceValidate) and feature.fail_validate
            for feature in fgraph._features
        )
        and not config.traceback__limit
        and not config.traceback__compile_limit
        and not config.optimizer_verbose
        and config.warn_float64 == "ignore"
    )


class _UnknownError(Exception):
    """Something in the graph is not what these steps are known for."""


class _Steps:
    """The steps of the pass, taken with numbers in the place of nodes and variables.

    Nodes and variables have numbers of their own, given when they are met. Those that steps make
    follow.

    Attributes
    ----------
    n_taken
        How many replacements there were.
    """

    def __init__(self, fgraph: FunctionGraph) -> None:
        self._fgraph = fgraph
        self.n_taken = 0
        self._number_of_node: dict[Node, int] = {}
        self._number_of_var: dict[Var, int] = {}
        # Of nodes.
        self._nodes: list[Node] = []
        self._inputs: list[list[int]] = []
        self._output: list[int | None] = []
        # Of variables.
        self._vars: list[Var] = []
        self._owner: list[int | None] = []
        self._is_increment: list[bool] = []
        # Who reads it: pairs of a node and a position, in the order in which they came.
        self._clients: list[list[tuple[int, int]]] = []
        # What the steps leave: the nodes of the graph that are gone; those that came or whose
        # inputs changed, in the order in which each was met first, and what they read.
        self._n_known = 0
        self._gone: list[int] = []
        self._changed: list[int] = []
        self._inputs_of: dict[int, list[int]] = {}
        # For each node that came the increment of the graph that it repeats, or None; and the
        # variables of the graph whose traces that of its output is put together from.
        self._repeats: list[int | None] = []
        self._traces: list[list[int]] = []
        self._made: list[Node] = []

    # Numbers ------------------------------------------------------------------------------

    def _var(self, var: Var) -> int:
        """Return the number of a variable of the graph."""
        number = self._number_of_var.get(var)
        if number is not None:
            return number
        number = self._number_of_var[var] = len(self._vars)
        self._vars.append(var)
        self._owner.append(None)
        self._is_increment.append(False)
        self._clients.append([])
        if var.owner is not None:
            self._owner[number] = self._node(var.owner)
        self._clients[number] = [(self._node(node), i) for node, i in self._fgraph.clients[var]]
        return number

    def _node(self, node: Node) -> int:
        """Return the number of a node of the graph; what it reads is asked by `_look_at`."""
        number = self._number_of_node.get(node)
        if number is None:
            number = self._number_of_node[node] = len(self._nodes)
            self._nodes.append(node)
            self._inputs.append([])
            self._output.append(None)
        return number

    def _look_at(self, number: int) -> None:
        """Learn what a node of the graph reads, and whether it is an increment that can move."""
        node = self._nodes[number]
        self._inputs[number] = [self._var(var) for var in node.inputs]
        output = self._output[number] = self._var(node.outputs[0])
        op = node.op
        if isinstance(op, IncSubtensor | AdvancedIncSubtensor):
            if type(op) not in (IncSubtensor, AdvancedIncSubtensor) or op.view_map:
                raise _UnknownError
            if not op.set_instead_of_inc:
                self._is_increment[output] = True
                if node.inputs[0].type != node.outputs[0].type or not _has_stacks(node.outputs[0]):
                    raise _UnknownError

    def _look_at_increments(self, var: Var) -> None:
        """Look at the increments on top of a variable."""
        node = var.owner
        while node is not None and isinstance(node.op, IncSubtensor | AdvancedIncSubtensor):
            number = self._node(node)
            if self._inputs[number]:
                break
            self._look_at(number)
            node = node.inputs[0].owner

    # Steps --------------------------------------------------------------------------------

    def take(self, nodes: list[Node]) -> None:
        """Go through nodes, and those that the steps make, as the pass does.

        Raises
        ------
        _UnknownError
            If there is anything that is not known; the graph is as it was.
        """
        is_sum: dict[int, tuple[bool, Any]] = {}
        sums: list[int] = []
        for node in nodes:
            op = node.op
            known = is_sum.get(id(op))
            if known is None:
                known = is_sum[id(op)] = op == add, op
            if not known[0]:
                continue
            for var in node.inputs:
                self._look_at_increments(var)
            sums.append(self._node(node))
        if True not in self._is_increment:
            return
        for number in sums:
            self._look_at(number)
            output = self._output[number]
            assert output is not None
            for reader, _ in self._clients[output]:
                if not self._inputs[reader]:
                    self._inputs[reader] = [self._var(var) for var in self._nodes[reader].inputs]
        self._n_known = len(self._nodes)
        try:
            left = string_together(
                self._inputs, self._output, self._owner, self._is_increment, self._clients, sums
            )
        except GraphError as error:
            # Somebody has written into the clients of a variable.
            raise _UnknownError from error
        (
            self.n_taken,
            moved,
            self._gone,
            self._changed,
            inputs,
            self._repeats,
            self._traces,
            self._clients,
        ) = left
        self._inputs_of = dict(zip(self._changed, inputs, strict=True))
        for number in moved:
            self._check_sum(self._nodes[number])

    def _check_sum(self, node: Node) -> None:
        """Look whether a sum of the graph is one that the steps are known for."""
        out = node.outputs[0]
        tag = vars(out.tag)
        clients = self._fgraph.clients[out]
        if (
            len(node.inputs) < 2
            or any(v.type != out.type for v in node.inputs)
            or not clients
            # It would be handed on.
            or out.name is not None
            or tag.get("nan_guard_mode_check", False)
            or not _has_stacks(out)
            # They would be noted to be made anew.
            or any(isinstance(client.op, Shape_i) for client, _ in clients)
        ):
            raise _UnknownError

    # The graph ----------------------------------------------------------------------------

    def make_nodes(self) -> None:
        """Make the nodes that are left at the end.

        Raises
        ------
        _UnknownError
            If one of them is not as it is known that it would be; the graph is as it was.
        """
        for repeated, traced in zip(self._repeats, self._traces, strict=True):
            number = self._n_known + len(self._made)
            n_inputs = len(self._inputs_of[number])
            # A variable of the graph of the type of all that a sum or increment works on.
            source: Any = self._vars[traced[0]]
            if repeated is None:
                out: Any = add(*[source] * n_inputs)
                node = out.owner
                if node.op is not add or any(v is not source for v in node.inputs):
                    raise _UnknownError
            else:
                repeats = self._nodes[repeated]
                out = repeats.op(*repeats.inputs)
                node = out.owner
                if node.op is not repeats.op or any(
                    a is not b for a, b in zip(node.inputs, repeats.inputs, strict=True)
                ):
                    raise _UnknownError
            if len(node.outputs) != 1 or len(node.inputs) != n_inputs or out.type != source.type:
                raise _UnknownError
            self._made.append(node)
        stacks_of = [getattr(var.tag, "trace", ()) for var in self._vars]
        variables = [*self._vars, *(node.outputs[0] for node in self._made)]
        for number, node in enumerate(self._made, self._n_known):
            node.inputs[:] = [variables[v] for v in self._inputs_of[number]]
            tag = node.outputs[0].tag
            traced = self._traces[number - self._n_known]
            stacks = chain.from_iterable(map(stacks_of.__getitem__, traced))
            tag.trace = [*getattr(tag, "trace", []), *stacks]

    def edit(self, rewriter: Any) -> None:
        """Put the nodes that are left into the graph, and take those out that are gone."""
        fgraph = self._fgraph
        text = str(rewriter)
        fgraph.checkpoint()
        for node in self._made:
            fgraph.apply_nodes.add(node)
            vars(node.tag)["imported_by"] = [text]
            out = node.outputs[0]
            fgraph.variables.add(out)
            fgraph.clients[out] = []
        nodes = [*self._nodes, *self._made]
        variables = [*self._vars, *(node.outputs[0] for node in self._made)]
        changes: dict[int, list[tuple[int, Var]]] = {}
        for number in self._changed:
            if number < self._n_known:
                node = nodes[number]
                changed = changes[number] = []
                for position, v in enumerate(self._inputs_of[number]):
                    old, new = node.inputs[position], variables[v]
                    if old is not new:
                        changed.append((position, old))
                        node.inputs[position] = new
                        if isinstance(node.op, Output):
                            fgraph.outputs[node.op.idx] = new
        gone = [nodes[number] for number in self._gone]
        for node in gone:
            fgraph.apply_nodes.remove(node)
            fgraph.variables.difference_update(node.outputs)
            vars(node.tag).setdefault("removed_by", []).append(text)
        for var, clients in zip(variables, self._clients, strict=True):
            fgraph.clients[var] = [(nodes[number], position) for number, position in clients]
        for number in self._changed:
            node = nodes[number]
            if number >= self._n_known:
                fgraph.execute_callbacks("on_import", node, rewriter)
                continue
            for position, old in changes[number]:
                new = node.inputs[position]
                fgraph.execute_callbacks(
                    "on_change_input", node, position, old, new, reason=rewriter
                )
        for node in gone:
            fgraph.execute_callbacks("on_prune", node, rewriter)
        for feature in fgraph._features:
            if isinstance(feature, DestroyHandler):
                self._put_in_order(feature)
        fgraph.validate()

    def _put_in_order(self, handler: DestroyHandler) -> None:
        """Let the clients of new variables stand in the order in which they came to read them."""
        for node in self._made:
            var = node.outputs[0]
            counts: dict[Any, int] = {}
            for client, _ in self._fgraph.clients[var]:
                if not isinstance(client.op, Output):
                    counts[client] = counts.get(client, 0) + 1
            handler.clients[var] = counts


def _has_stacks(var: Var) -> bool:
    """Whether the trace of a variable is a list of stacks, or empty."""
    trace = vars(var.tag).get("trace", [])
    return type(trace) is list and not (trace and isinstance(trace[0], tuple))


def patch() -> Patch:
    """Return the patch."""
    return BoundDropIn(the_pass(), "apply", apply)
