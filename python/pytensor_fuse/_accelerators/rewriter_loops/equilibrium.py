"""Equilibrium passes: node rewriters are tried until none changes the graph."""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

from pytensor.configdefaults import config
from pytensor.graph.fg import Output
from pytensor.graph.rewriting import basic
from pytensor.graph.rewriting.basic import ChangeTracker

from pytensor_fuse._accelerators.prefilters import drop_in as prefilters
from pytensor_fuse._accelerators.rewriter_loops.candidates import found_by, has_own_lookup
from pytensor_fuse._accelerators.rewriter_loops.node_rewriters import processes_as_stock, replace
from pytensor_fuse._accelerators.rewriter_loops.unchanged_graphs import in_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.op import Op

    from pytensor_fuse._accelerators.rewriter_loops.candidates import Candidate

_clock = time.perf_counter
_logger = basic._logger


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
    tracker = self.node_tracker
    found = found_by(tracker)
    is_stock = processes_as_stock(self)
    failure_callback = self.failure_callback
    sources = prefilters.sources
    apply_nodes = fgraph.apply_nodes
    time_rewriters: dict[Any, float] = dict.fromkeys(self.global_rewriters, 0.0)
    # In this order; a dict has the hashes of its keys.
    time_rewriters.update(found.no_seconds)
    time_rewriters.update(dict.fromkeys(self.final_rewriters, 0.0))
    time_rewriters.update(dict.fromkeys(self.cleanup_rewriters, 0.0))
    io_toposort_timing = []
    nb_nodes = []
    node_created: Counter[Any] = Counter()
    global_sub_profs = []
    final_sub_profs = []
    cleanup_sub_profs = []

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

    # The rewriters of an op, by its address; the op is kept so that no other gets it.
    of_op: dict[int, tuple[list[Candidate], Op]] = {}
    spent = found.no_time.copy()
    asks_trackers = not has_own_lookup(tracker)

    def note_seconds() -> None:
        for rewriter, seconds in zip(found.rewriters, spent, strict=True):
            if seconds:
                time_rewriters[rewriter] = time_rewriters.get(rewriter, 0.0) + seconds

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
        q = deque(in_order(fgraph, start_from))
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
                if tracker._cached_composed_mro is not found.mro:
                    # A rewriter has been added.
                    note_seconds()
                    found = found_by(tracker)
                    spent = found.no_time.copy()
                    of_op.clear()
                candidates: Any
                if asks_trackers or not has_own_lookup(tracker) or not is_stock:
                    # Somebody counts how far this goes through what the tracker returns.
                    candidates = map(found.candidate, tracker.get_trackers(op))
                elif (kept := of_op.get(id(op))) is not None:
                    candidates = kept[0]
                else:
                    candidates = found.candidates(op)
                    of_op[id(op)] = candidates, op
                there_is = -1
                t_rewrite = _clock()
                for node_rewriter, number, is_plain, wants in candidates:
                    if wants:
                        if there_is < 0:
                            there_is = sources(node.inputs)
                        if not wants & there_is:
                            continue
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
                            spent[number] += t_end - t_rewrite
                            t_rewrite = t_end
                            continue
                        node_rewriter_change = replace(
                            self, fgraph, node, node_rewriter, replacements
                        )
                    else:
                        node_rewriter_change = self.process_node(
                            fgraph, node, node_rewriter, enforce_tracks=False
                        )
                    t_end = _clock()
                    spent[number] += t_end - t_rewrite
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
                    there_is = -1
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
    note_seconds()
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
