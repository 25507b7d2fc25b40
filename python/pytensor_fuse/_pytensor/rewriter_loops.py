"""The loops of passes that try node rewriters on nodes, as PyTensor has them, with less around.

What these functions do is what the methods of the same names in `pytensor.graph.rewriting.basic`
do, in the same order: the same node rewriters on the same nodes, the same profile. They leave out
what takes the time: a method between the loop and the rewriter, the hash of an op each time it is
looked up, and that of a rewriter, which is a Python function, each time its seconds are added; and
the order of the nodes of a graph that is as it was when it was last asked for.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from pytensor.configdefaults import config
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.rewriting import basic
from pytensor.graph.rewriting.basic import (
    ChangeTracker,
    FromFunctionNodeRewriter,
    NodeProcessingGraphRewriter,
    OpToRewriterTracker,
    SequentialNodeRewriter,
)
from pytensor.graph.traversal import apply_ancestors, toposort

from pytensor_fuse._core import NodeOrder
from pytensor_fuse._pytensor.drop_ins import in_file_of
from pytensor_fuse._pytensor.node_trackers import LOOKUP

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op

    # A node rewriter, the seconds that it has taken, and whether it is a function and no more.
    _Candidate = tuple[Any, list[float], bool]

_clock = time.perf_counter
_logger = basic._logger


def transform_tracked(
    self: Any, fgraph: FunctionGraph, node: Apply[Any], enforce_tracks: bool = True
) -> Any:
    """Do as `FromFunctionNodeRewriter.transform`; hash the op only if there are ops to find."""
    if enforce_tracks and self._tracks:
        node_op = node.op
        ops = self._tracked_ops
        if not (
            (ops and node_op in ops)
            or isinstance(node_op, self._tracked_types)
            or (
                isinstance(node.op, self._tracked_op_pattern_types)
                and any(
                    t.match_parameters(node_op)
                    for t in self._tracked_op_patterns
                    if isinstance(node_op, t.op_type)
                )
            )
        ):
            return False
    return self.fn(fgraph, node)


def process_node(
    self: Any,
    fgraph: FunctionGraph,
    node: Apply[Any],
    node_rewriter: Any = None,
    enforce_tracks: bool = True,
) -> bool:
    """Do as `NodeProcessingGraphRewriter.process_node`."""
    node_rewriter = node_rewriter or self.node_rewriter
    assert node_rewriter is not None
    try:
        replacements = node_rewriter.transform(fgraph, node, enforce_tracks=enforce_tracks)
    except Exception as e:
        if self.failure_callback is not None:
            self.failure_callback(e, self, [(x, None) for x in node.outputs], node_rewriter, node)
            return False
        raise
    if replacements is False or replacements is None:
        return False
    return _replace(self, fgraph, node, node_rewriter, replacements)


@in_file_of(NodeProcessingGraphRewriter.process_node)
def _replace(
    self: Any, fgraph: FunctionGraph, node: Apply[Any], node_rewriter: Any, replacements: Any
) -> bool:
    """Do what `NodeProcessingGraphRewriter.process_node` does with what a rewriter has returned."""
    old_vars: Any = node.outputs
    remove: list[Any] = []
    if isinstance(replacements, dict):
        if "remove" in replacements:
            remove = list(replacements.pop("remove"))
        old_vars = list(replacements)
        replacements = list(replacements.values())
    elif not isinstance(replacements, tuple | list):
        raise TypeError(
            f"Node rewriter {node_rewriter} gave wrong type of replacement. "
            f"Expected list or tuple; got {replacements}"
        )
    if len(old_vars) != len(replacements):
        raise ValueError(f"Node rewriter {node_rewriter} gave wrong number of replacements")
    for r, rnew in zip(old_vars, replacements, strict=True):
        if rnew is None and len(fgraph.clients[r]) > 0:
            raise ValueError(
                f"Node rewriter {node_rewriter} tried to remove a variable that is being used: {r}"
            )
    repl_pairs = [
        (r, rnew)
        for r, rnew in zip(old_vars, replacements, strict=True)
        if rnew is not r and rnew is not None
    ]
    if len(repl_pairs) == 0:
        return False
    try:
        fgraph.replace_all_validate_remove(repl_pairs, reason=node_rewriter, remove=remove)
        return True
    except Exception as e:
        if self.failure_callback is not None:
            self.failure_callback(e, self, repl_pairs, node_rewriter, node)
            return False
        raise


_stock_process_node = NodeProcessingGraphRewriter.process_node
_stock_transform = FromFunctionNodeRewriter.transform
_stock_group_transform = SequentialNodeRewriter.transform
_PROCESS_NODE = "process_node"
_TRANSFORM = "transform"


def _processes_as_stock(rewriter: Any) -> bool:
    """Whether a pass has PyTensor's ``process_node``, its own or the one here."""
    if _PROCESS_NODE in vars(rewriter):
        return False
    return _is(type(rewriter).process_node, _stock_process_node)


def _is_plain(rewriter: Any) -> bool:
    """Whether a node rewriter does nothing but call its function where no tracks are enforced."""
    return (
        type(rewriter) is FromFunctionNodeRewriter
        and _TRANSFORM not in vars(rewriter)
        and _is(FromFunctionNodeRewriter.transform, _stock_transform)
    )


def _is(method: object, stock: object) -> bool:
    """Whether a method is PyTensor's, or the one here that takes its place."""
    return method is stock or getattr(method, "__wrapped__", None) is stock


def _has_own_lookup(tracker: Any) -> bool:
    """Whether nobody counts what a tracker is asked."""
    return type(tracker) is OpToRewriterTracker and LOOKUP not in vars(OpToRewriterTracker)


class _Refusals:
    """Which ops a node rewriter refuses at once, asked once for each op, or each class of ops.

    Attributes
    ----------
    depends_on
        What of the rewriter the answers depend on.
    """

    def __init__(
        self, depends_on: tuple[Any, ...], refuses: Callable[[Op], bool], by_class: bool
    ) -> None:
        self.depends_on = depends_on
        self._refuses = refuses
        self._by_class = by_class
        # By the address of the op or class, which another may get once that is gone.
        self._known: dict[int, tuple[bool, Any]] = {}

    def has(self, op: Op) -> bool:
        """Whether nodes of ``op`` are refused."""
        key: Any = type(op) if self._by_class else op
        known = self._known.get(id(key))
        if known is None or known[1]() is not key:
            if len(self._known) >= _MANY_OPS:
                self._known.clear()
            self._known[id(key)] = known = self._refuses(op), ref(key)
        return known[0]


# Most passes change nothing. A compile with inner graphs has several graphs at a time.
_orders: WeakKeyDictionary[FunctionGraph, NodeOrder] = WeakKeyDictionary()
_MANY_GRAPHS = 4


def _in_order(fgraph: FunctionGraph, start_from: Any) -> list[Apply[Any]]:
    """Return what `toposort` gives.

    Notes
    -----
    O(nodes + edges); a tenth of the time of `toposort` where the graph is as it was. What computes
    a variable, and what a node gives, never change.
    """
    if type(fgraph) is not FunctionGraph or start_from is not fgraph.outputs:
        return list(toposort(start_from))
    known = _orders.get(fgraph)
    if known is None or not known.still_is(start_from):
        if len(_orders) >= _MANY_GRAPHS:
            _orders.clear()
        try:
            _orders[fgraph] = known = NodeOrder(start_from, Constant)
        except ValueError:
            # There is a cycle, of which PyTensor never hears the end.
            return list(toposort(start_from))
    return known.nodes


# The passes of all graphs have the same rewriters.
_kept: WeakKeyDictionary[Any, _Refusals] = WeakKeyDictionary()
_MANY_OPS = 1024


def _refusals(rewriter: Any) -> _Refusals | None:
    """Return what knows which ops a node rewriter refuses at once; None if it may do more."""
    if LOOKUP in vars(OpToRewriterTracker):
        # Somebody counts what is asked.
        return None
    depends_on: tuple[Any, ...]
    if type(rewriter) is FromFunctionNodeRewriter and rewriter._tracks:
        if not _is(FromFunctionNodeRewriter.transform, _stock_transform):
            return None
        if _TRANSFORM in vars(rewriter):
            return None
        ops, types = rewriter._tracked_ops, rewriter._tracked_types
        patterns, pattern_types = (
            rewriter._tracked_op_patterns,
            rewriter._tracked_op_pattern_types,
        )
        depends_on = ops, types, patterns, pattern_types

        def refuses(op: Op) -> bool:
            return not (
                (ops and op in ops)
                or isinstance(op, types)
                or (
                    isinstance(op, pattern_types)
                    and any(t.match_parameters(op) for t in patterns if isinstance(op, t.op_type))
                )
            )

        by_class = not ops and not patterns
    elif (
        type(rewriter) is SequentialNodeRewriter
        and type(rewriter.tracker) is OpToRewriterTracker
        and rewriter.rewrites
        and _TRANSFORM not in vars(rewriter)
        and SequentialNodeRewriter.transform is _stock_group_transform
    ):
        tracker = rewriter.tracker
        depends_on = (
            # It is another once a rewriter has been added.
            tracker.get_trackers,
            len(tracker.tracked_instances),
            len(tracker.tracked_types),
            sum(map(len, tracker.tracked_pattern_types.values())),
            len(tracker.untracked_rewrites),
        )

        def refuses(op: Op) -> bool:
            return not tracker.get_trackers(op)

        by_class = not tracker.tracked_instances and not tracker.tracked_pattern_types
    else:
        return None
    kept = _kept.get(rewriter)
    if kept is None or not all(
        a is b or (type(a) is int and a == b)
        for a, b in zip(kept.depends_on, depends_on, strict=False)
    ):
        kept = _kept[rewriter] = _Refusals(depends_on, refuses, by_class)
    return kept


def walk(self: Any, fgraph: FunctionGraph, start_from: Any = None) -> Any:
    """Do as `WalkingGraphRewriter.apply`; nodes of ops that the rewriter refuses are passed by."""
    if start_from is None:
        start_from = fgraph.outputs
    callback_before = fgraph.execute_callbacks_time
    nb_nodes_start = len(fgraph.apply_nodes)
    t0 = _clock()
    refusals = _refusals(self.node_rewriter) if _processes_as_stock(self) else None
    # By the address of the op, which is kept so that no other gets it.
    refused: dict[int, tuple[bool, Op]] = {}
    if refusals is not None:
        ops = {id(node.op): node.op for node in fgraph.apply_nodes}
        refused = {address: (refusals.has(op), op) for address, op in ops.items()}
    q: deque[Apply[Any]]
    if refused and all(is_refused for is_refused, _ in refused.values()):
        # It would pass by all nodes.
        q = deque()
    elif self.order == "dfs":
        q = deque(apply_ancestors(start_from))
    else:
        q = deque(_in_order(fgraph, start_from))
    io_t = _clock() - t0

    def importer(node: Apply[Any]) -> None:
        if node is not current_node:
            q.append(node)

    u = self.attach_updater(fgraph, importer, None, name=getattr(self, "name", None))
    nb = 0
    backwards = self.order == "out_to_in"
    apply_nodes = fgraph.apply_nodes
    try:
        t0 = _clock()
        while q:
            node = q.pop() if backwards else q.popleft()
            if node not in apply_nodes:
                continue
            if refusals is not None:
                op = node.op
                known = refused.get(id(op))
                if known is None:
                    known = refused[id(op)] = refusals.has(op), op
                if known[0]:
                    continue
            current_node = node
            nb += self.process_node(fgraph, node, enforce_tracks=True)
        loop_t = _clock() - t0
    finally:
        self.detach_updater(fgraph, u)

    callback_time = fgraph.execute_callbacks_time - callback_before
    nb_nodes_end = len(fgraph.apply_nodes)
    return (
        self,
        nb,
        nb_nodes_start,
        nb_nodes_end,
        io_t,
        loop_t,
        callback_time,
        self.node_rewriter,
    )


def _name_of(rewriter: Any) -> Any:
    return getattr(rewriter, "name", None) or getattr(rewriter, "__name__", "")


def reach_equilibrium(self: Any, fgraph: FunctionGraph, start_from: Any = None) -> Any:
    """Do as `EquilibriumGraphRewriter.apply`."""
    change_tracker = ChangeTracker()
    fgraph.attach_feature(change_tracker)
    if start_from is None:
        start_from = fgraph.outputs
    else:
        for node in start_from:
            assert node in fgraph.outputs

    changed = True
    max_use_abort = False
    rewriter_name = None
    global_process_count: Counter[Any] = Counter()
    start_nb_nodes = len(fgraph.apply_nodes)
    max_nb_nodes = len(fgraph.apply_nodes)
    max_use = max_nb_nodes * self.max_use_ratio

    loop_timing = []
    loop_process_count = []
    global_rewriter_timing = []
    time_rewriters: dict[Any, float] = defaultdict(float)
    io_toposort_timing = []
    nb_nodes = []
    node_created: Counter[Any] = Counter()
    global_sub_profs = []
    final_sub_profs = []
    cleanup_sub_profs = []

    for rewriter in [
        *self.global_rewriters,
        *self.get_node_rewriters(),
        *self.final_rewriters,
        *self.cleanup_rewriters,
    ]:
        time_rewriters[rewriter] += 0

    process_count: Counter[Any]

    def apply_cleanup(profs_dict: dict[Any, list[Any]]) -> bool:
        changed = False
        for crewriter in self.cleanup_rewriters:
            change_tracker.reset()
            nb = change_tracker.nb_imported
            t_rewrite = _clock()
            sub_prof = crewriter.apply(fgraph)
            time_rewriters[crewriter] += _clock() - t_rewrite
            profs_dict[crewriter].append(sub_prof)
            if change_tracker.changed:
                process_count[crewriter] += 1
                global_process_count[crewriter] += 1
                changed = True
                node_created[crewriter] += change_tracker.nb_imported - nb
        return changed

    def apply_passes(rewriters: list[Any]) -> list[Any]:
        nonlocal changed, max_use_abort, rewriter_name
        sub_profs = []
        for grewrite in rewriters:
            change_tracker.reset()
            nb = change_tracker.nb_imported
            t_rewrite = _clock()
            sub_prof = grewrite.apply(fgraph)
            time_rewriters[grewrite] += _clock() - t_rewrite
            sub_profs.append(sub_prof)
            if change_tracker.changed:
                process_count[grewrite] += 1
                global_process_count[grewrite] += 1
                changed = True
                node_created[grewrite] += change_tracker.nb_imported - nb
                if global_process_count[grewrite] > max_use:
                    max_use_abort = True
                    rewriter_name = _name_of(grewrite)
        return sub_profs

    tracker = self.node_tracker
    is_stock = _processes_as_stock(self)
    failure_callback = self.failure_callback
    apply_nodes = fgraph.apply_nodes
    # The rewriters of an op, by its address; the op is kept so that no other gets it.
    of_op: dict[int, tuple[list[_Candidate], Op]] = {}
    # The same by the address of the list that the tracker keeps for equal ops.
    of_list: dict[int, tuple[list[_Candidate], Any]] = {}
    # By the address of the rewriter.
    entries: dict[int, _Candidate] = {}

    def entry_of(rewriter: Any) -> _Candidate:
        entry = entries.get(id(rewriter))
        if entry is None:
            entry = entries[id(rewriter)] = rewriter, [0.0], _is_plain(rewriter)
        return entry

    def candidates_of(op: Op) -> list[_Candidate]:
        rewriters = tracker.get_trackers(op)
        known = of_list.get(id(rewriters))
        if known is None:
            known = of_list[id(rewriters)] = [entry_of(rw) for rw in rewriters], rewriters
        of_op[id(op)] = known[0], op
        return known[0]

    while changed and not max_use_abort:
        process_count = Counter()
        t0 = _clock()
        changed = False
        iter_cleanup_sub_profs: dict[Any, list[Any]] = {}
        for crewrite in self.cleanup_rewriters:
            iter_cleanup_sub_profs[crewrite] = []

        # Apply global rewriters
        global_sub_profs.append(apply_passes(self.global_rewriters))

        global_rewriter_timing.append(float(_clock() - t0))

        changed |= apply_cleanup(iter_cleanup_sub_profs)

        topo_t0 = _clock()
        q = deque(_in_order(fgraph, start_from))
        io_toposort_timing.append(_clock() - topo_t0)

        nb_nodes.append(len(q))
        max_nb_nodes = max(max_nb_nodes, len(q))
        max_use = max_nb_nodes * self.max_use_ratio

        def importer(node: Apply[Any]) -> None:
            if node is not current_node:  # noqa: B023 - called in this round alone
                q.append(node)  # noqa: B023

        chin: Callable[..., None] | None = None
        if self.tracks_on_change_inputs:

            def chin_(node: Apply[Any], i: int, r: Any, new_r: Any, reason: Any) -> None:
                if node is not current_node and not isinstance(node.op, Output):  # noqa: B023
                    q.append(node)  # noqa: B023

            chin = chin_

        u = self.attach_updater(fgraph, importer, None, chin=chin, name=getattr(self, "name", None))
        try:
            while q:
                node = q.pop()
                if node not in apply_nodes:
                    continue
                current_node = node
                op = node.op
                candidates: Any
                if not _has_own_lookup(tracker):
                    # Somebody counts how far this goes through what the tracker returns.
                    candidates = map(entry_of, tracker.get_trackers(op))
                elif (kept := of_op.get(id(op))) is not None:
                    candidates = kept[0]
                else:
                    candidates = candidates_of(op)
                t_rewrite = _clock()
                for node_rewriter, spent, is_plain in candidates:
                    nb = change_tracker.nb_imported
                    if is_stock:
                        try:
                            # Its own `transform` does nothing but this where it enforces nothing.
                            replacements = (
                                node_rewriter.fn(fgraph, node)
                                if is_plain
                                else node_rewriter.transform(fgraph, node, enforce_tracks=False)
                            )
                        except Exception as e:
                            if failure_callback is None:
                                raise
                            failure_callback(
                                e, self, [(x, None) for x in node.outputs], node_rewriter, node
                            )
                            replacements = False
                        if replacements is False or replacements is None:
                            t_end = _clock()
                            spent[0] += t_end - t_rewrite
                            t_rewrite = t_end
                            continue
                        node_rewriter_change = _replace(
                            self, fgraph, node, node_rewriter, replacements
                        )
                    else:
                        node_rewriter_change = self.process_node(
                            fgraph, node, node_rewriter, enforce_tracks=False
                        )
                    t_end = _clock()
                    spent[0] += t_end - t_rewrite
                    t_rewrite = t_end
                    if not node_rewriter_change:
                        continue
                    process_count[node_rewriter] += 1
                    global_process_count[node_rewriter] += 1
                    changed = True
                    node_created[node_rewriter] += change_tracker.nb_imported - nb
                    changed |= apply_cleanup(iter_cleanup_sub_profs)
                    if global_process_count[node_rewriter] > max_use:
                        max_use_abort = True
                        rewriter_name = _name_of(node_rewriter)
                    if node not in apply_nodes:
                        # go to next node
                        break
                    t_rewrite = _clock()
        finally:
            self.detach_updater(fgraph, u)

        # Apply final rewriters
        t_before_final_rewrites = _clock()
        final_sub_profs.append(apply_passes(self.final_rewriters))

        global_rewriter_timing[-1] += _clock() - t_before_final_rewrites

        changed |= apply_cleanup(iter_cleanup_sub_profs)

        # Merge clean up profiles during that iteration
        c_sub_profs = []
        for crewrite, sub_profs in iter_cleanup_sub_profs.items():
            sub_prof = sub_profs[0]
            for s_p in sub_profs[1:]:
                sub_prof = crewrite.merge_profile(sub_prof, s_p)
            c_sub_profs.append(sub_prof)
        cleanup_sub_profs.append(c_sub_profs)

        loop_process_count.append(process_count)
        loop_timing.append(float(_clock() - t0))

    end_nb_nodes = len(fgraph.apply_nodes)

    if max_use_abort:
        msg = (
            f"{type(self).__name__} max'ed out by {rewriter_name}."
            "You can safely raise the current threshold of "
            f"{config.optdb__max_use_ratio} with the option `optdb__max_use_ratio`."
        )
        if config.on_opt_error == "raise":
            raise AssertionError(msg)
        _logger.error(msg)
    fgraph.remove_feature(change_tracker)
    for rewriter, spent, _ in entries.values():
        time_rewriters[rewriter] += spent[0]
    return (
        self,
        loop_timing,
        loop_process_count,
        (start_nb_nodes, end_nb_nodes, max_nb_nodes),
        global_rewriter_timing,
        nb_nodes,
        dict(time_rewriters),
        io_toposort_timing,
        node_created,
        global_sub_profs,
        final_sub_profs,
        cleanup_sub_profs,
    )
