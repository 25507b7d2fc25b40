"""Walks: a pass that tries one node rewriter on each node of a graph."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

from pytensor.graph.rewriting.basic import NodeProcessingGraphRewriter
from pytensor.graph.traversal import apply_ancestors

from pytensor_fuse._accelerators.prefilters import drop_in as prefilters
from pytensor_fuse._accelerators.rewriter_loops.node_rewriters import processes_as_stock
from pytensor_fuse._accelerators.rewriter_loops.refusals import refusals_of, wanted_by
from pytensor_fuse._accelerators.rewriter_loops.unchanged_graphs import in_order, ops_in

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.op import Op

_clock = time.perf_counter


_stock_attach = NodeProcessingGraphRewriter.attach_updater
_stock_detach = NodeProcessingGraphRewriter.detach_updater


def _attaches_as_stock(rewriter: Any) -> bool:
    """Whether nobody has given a pass methods of its own that it attaches what listens by."""
    class_ = type(rewriter)
    return (
        class_.attach_updater is _stock_attach
        and class_.detach_updater is _stock_detach
        and not {"attach_updater", "detach_updater"} & vars(rewriter).keys()
    )


def walk(self: Any, fgraph: FunctionGraph, start_from: Any = None) -> Any:
    """Do as `WalkingGraphRewriter.apply`; nodes of ops that the rewriter refuses are passed by."""
    if start_from is None:
        start_from = fgraph.outputs
    callback_before = fgraph.execute_callbacks_time
    nb_nodes_start = len(fgraph.apply_nodes)
    t0 = _clock()
    refusals: Any = None
    wants_of = None
    if processes_as_stock(self):
        refusals = refusals_of(self.node_rewriter)
        wants_of = wanted_by(self.node_rewriter, refusals)
    # By the address of the op, which is kept so that no other gets it: whether its nodes are
    # refused, and what they must have.
    refused: dict[int, tuple[bool, Op]] = {}
    wanted: dict[int, prefilters.Wants] = {}
    if refusals is not None:
        refused = {address: (refusals.has(op), op) for address, op in ops_in(fgraph).items()}
    knows = refusals is not None or wants_of is not None
    q: deque[Apply[Any]]
    if refused and all(is_refused for is_refused, _ in refused.values()):
        # It would pass by all nodes.
        q = deque()
    elif self.order == "dfs":
        q = deque(apply_ancestors(start_from))
    else:
        q = deque(in_order(fgraph, start_from))
    io_t = _clock() - t0

    def importer(node: Apply[Any]) -> None:
        if node is not current_node:
            q.append(node)

    updater: Any = None
    is_attached = not _attaches_as_stock(self)
    if is_attached:
        updater = self.attach_updater(fgraph, importer, None, name=getattr(self, "name", None))
    nb = 0
    backwards = self.order == "out_to_in"
    apply_nodes = fgraph.apply_nodes
    try:
        t0 = _clock()
        while q:
            node = q.pop() if backwards else q.popleft()
            if node not in apply_nodes:
                continue
            if knows:
                op = node.op
                known = refused.get(id(op))
                if known is None:
                    known = refused[id(op)] = refusals is not None and refusals.has(op), op
                if known[0]:
                    continue
                if wants_of is not None:
                    wants = wanted.get(id(op))
                    if wants is None:
                        wants = wanted[id(op)] = wants_of(op)
                    if wants and not wants & prefilters.sources(node.inputs):
                        continue
            current_node = node
            if not is_attached:
                # Nothing has happened until now that there would be to hear.
                is_attached = True
                name = getattr(self, "name", None)
                updater = self.attach_updater(fgraph, importer, None, name=name)
            nb += self.process_node(fgraph, node, enforce_tracks=True)
        loop_t = _clock() - t0
    finally:
        if is_attached:
            self.detach_updater(fgraph, updater)

    callback_time = fgraph.execute_callbacks_time - callback_before
    nb_nodes_end = len(fgraph.apply_nodes)
    return (self, nb, nb_nodes_start, nb_nodes_end, io_t, loop_t, callback_time, self.node_rewriter)
