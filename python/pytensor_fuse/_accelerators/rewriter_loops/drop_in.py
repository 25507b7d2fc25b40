"""The loops of passes that try node rewriters on nodes, as PyTensor has them, with less around.

What these functions do is what the methods of the same names in `pytensor.graph.rewriting.basic`
do, in the same order: the same node rewriters on the same nodes, the same profile. They leave out
what takes the time: a method between the loop and the rewriter, the hash of an op each time it is
looked up, and that of a rewriter, which is a Python function, each time its seconds are added; and
the order of the nodes of a graph that is as it was when it was last asked for.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

from pytensor.configdefaults import config
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.rewriting import basic
from pytensor.graph.rewriting.basic import (
    ChangeTracker,
    EquilibriumGraphRewriter,
    FromFunctionNodeRewriter,
    NodeProcessingGraphRewriter,
    OpToRewriterTracker,
    SequentialNodeRewriter,
    WalkingGraphRewriter,
)
from pytensor.graph.traversal import apply_ancestors, toposort
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._accelerators.prefilters import drop_in as prefilters
from pytensor_fuse._core import NodeOrder
from pytensor_fuse._pytensor.choosy_walks import ChoosyWalk
from pytensor_fuse._pytensor.drop_ins import DropIn, Together, in_file_of
from pytensor_fuse._pytensor.node_trackers import LOOKUP
from pytensor_fuse._pytensor.origin import does_as, is_pytensors

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op

    # A node rewriter, its number, whether it is a function and no more, and what it wants.
    _Candidate = tuple[Any, int, bool, prefilters.Wants]
    from pytensor_fuse._pytensor.patches import Patch

_T = TypeVar("_T")

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
    return does_as(type(rewriter).process_node, _stock_process_node)


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


def _is_plain(rewriter: Any) -> bool:
    """Whether a node rewriter does nothing but call its function where no tracks are enforced."""
    return (
        type(rewriter) is FromFunctionNodeRewriter
        and _TRANSFORM not in vars(rewriter)
        and does_as(FromFunctionNodeRewriter.transform, _stock_transform)
    )


def _has_own_lookup(tracker: Any) -> bool:
    """Whether nobody counts what a tracker is asked."""
    return type(tracker) is OpToRewriterTracker and LOOKUP not in vars(OpToRewriterTracker)


class _Kinds:
    """Which ops are alike to what looks at classes, and at whether an op equals one of some.

    Parameters
    ----------
    instances
        The ops that others are compared with. They equal ops of their own class alone, and Elemwise
        one of a scalar op of the same class.
    patterns
        The classes of ops of which more is looked at, as `issubclass` takes them.
    told_apart
        Further classes of which ops are not alike. Elemwise are, with scalar ops of one class.
    """

    def __init__(
        self, instances: Collection[Any], patterns: Any, told_apart: Iterable[type] = ()
    ) -> None:
        self._patterns = patterns
        self._compares = bool(instances)
        self._apart = {type(op) for op in instances}.union(told_apart)
        self._apart_scalars = {type(op.scalar_op) for op in instances if type(op) is Elemwise}

    def are_all_alike(self, op: Any) -> bool:
        """Whether all ops of the class are; of Elemwise, all whose scalar ops are of a class."""
        class_: Any = type(op)
        if class_ is Elemwise:
            is_apart = type(op.scalar_op) in self._apart_scalars
        else:
            is_apart = class_ in self._apart
        return (
            not is_apart
            and (not self._compares or is_pytensors(class_.__eq__))
            and not issubclass(class_, self._patterns)
        )


class _OfOps(Generic[_T]):
    """What is remembered of ops: once for each class of ops, where those are alike.

    Parameters
    ----------
    kinds
        Which are alike.
    """

    def __init__(self, kinds: _Kinds) -> None:
        self._kinds = kinds
        self._of_classes: dict[type, _T] = {}
        # Of Elemwise, by the class of the scalar op.
        self._of_scalars: dict[type, _T] = {}
        # By the address of the op, which another may get once that is gone.
        self._of_ops: dict[int, tuple[_T, Any]] = {}

    def get(self, op: Any) -> _T | None:
        """Return what is remembered; None if nothing is."""
        class_ = type(op)
        if class_ is Elemwise:
            found = self._of_scalars.get(type(op.scalar_op))
        else:
            found = self._of_classes.get(class_)
        if found is None:
            known = self._of_ops.get(id(op))
            if known is not None and known[1]() is op:
                return known[0]
        return found

    def remember(self, op: Any, what: _T) -> None:
        """Remember it, of all that are alike."""
        if not self._kinds.are_all_alike(op):
            if len(self._of_ops) >= _MANY_OPS:
                self._of_ops.clear()
            self._of_ops[id(op)] = what, ref(op)
        elif type(op) is Elemwise:
            self._of_scalars[type(op.scalar_op)] = what
        else:
            self._of_classes[type(op)] = what


class _Refusals:
    """Which ops a node rewriter refuses at once, asked once for all that are alike.

    Attributes
    ----------
    depends_on
        What of the rewriter the answers depend on.
    """

    def __init__(
        self, depends_on: tuple[Any, ...], refuses: Callable[[Op], bool], kinds: _Kinds
    ) -> None:
        self.depends_on = depends_on
        self._refuses = refuses
        self._known: _OfOps[bool] = _OfOps(kinds)

    def has(self, op: Op) -> bool:
        """Whether nodes of ``op`` are refused."""
        known = self._known.get(op)
        if known is None:
            known = self._refuses(op)
            self._known.remember(op, known)
        return known


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


_ops: WeakKeyDictionary[FunctionGraph, tuple[set[Apply[Any]], dict[int, Op]]] = WeakKeyDictionary()


def _ops_in(fgraph: FunctionGraph) -> dict[int, Op]:
    """Return the ops in a graph by their addresses; most passes leave it as it was."""
    nodes = fgraph.apply_nodes
    known = _ops.get(fgraph)
    if known is None or known[0] != nodes:
        if len(_ops) >= _MANY_GRAPHS:
            _ops.clear()
        known = _ops[fgraph] = set(nodes), {id(node.op): node.op for node in nodes}
    return known[1]


# The passes of all graphs have the same rewriters.
_kept: WeakKeyDictionary[Any, _Refusals] = WeakKeyDictionary()
_MANY_OPS = 1024


def _refusals(rewriter: Any) -> _Refusals | _Found | None:
    """Return what knows which ops a node rewriter refuses at once; None if it may do more."""
    if LOOKUP in vars(OpToRewriterTracker):
        # Somebody counts what is asked.
        return None
    depends_on: tuple[Any, ...]
    if type(rewriter) is FromFunctionNodeRewriter and rewriter._tracks:
        if not does_as(FromFunctionNodeRewriter.transform, _stock_transform):
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

        kinds = _Kinds(ops, pattern_types)
    elif (
        type(rewriter) is SequentialNodeRewriter
        and type(rewriter.tracker) is OpToRewriterTracker
        and rewriter.rewrites
        and _TRANSFORM not in vars(rewriter)
        and SequentialNodeRewriter.transform is _stock_group_transform
    ):
        return found_by(rewriter.tracker)
    else:
        return None
    kept = _kept.get(rewriter)
    if kept is None or not all(
        a is b or (type(a) is int and a == b)
        for a, b in zip(kept.depends_on, depends_on, strict=False)
    ):
        kept = _kept[rewriter] = _Refusals(depends_on, refuses, kinds)
    return kept


def _wants(
    rewriter: Any, refusals: _Refusals | _Found | None
) -> Callable[[Op], prefilters.Wants] | None:
    """Return what tells what a node rewriter wants of nodes of an op; None if nothing is known."""
    if not prefilters.in_use or LOOKUP in vars(OpToRewriterTracker):
        return None
    if isinstance(refusals, _Found):
        return refusals.wants
    return prefilters.wants_by(rewriter) if _is_plain(rewriter) else None


def walk(self: Any, fgraph: FunctionGraph, start_from: Any = None) -> Any:
    """Do as `WalkingGraphRewriter.apply`; nodes of ops that the rewriter refuses are passed by."""
    if start_from is None:
        start_from = fgraph.outputs
    callback_before = fgraph.execute_callbacks_time
    nb_nodes_start = len(fgraph.apply_nodes)
    t0 = _clock()
    refusals: Any = None
    wants_of = None
    if _processes_as_stock(self):
        refusals = _refusals(self.node_rewriter)
        wants_of = _wants(self.node_rewriter, refusals)
    elif isinstance(self, ChoosyWalk) and _PROCESS_NODE not in vars(self):
        refusals = self.refused
    # By the address of the op, which is kept so that no other gets it: whether its nodes are
    # refused, and what they must have.
    refused: dict[int, tuple[bool, Op]] = {}
    wanted: dict[int, prefilters.Wants] = {}
    if refusals is not None:
        refused = {address: (refusals.has(op), op) for address, op in _ops_in(fgraph).items()}
    knows = refusals is not None or wants_of is not None
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


class _Found:
    """What a tracker finds for ops: candidates, each with a number among all of that tracker.

    Trackers that are copies of each other share it (`_accelerators.queries.drop_in`).
    """

    def __init__(self, tracker: Any) -> None:
        if tracker._cached_composed_mro is None:
            tracker._get_trackers(None)
        # It is another one once a rewriter has been added.
        self.mro = tracker._cached_composed_mro
        self._find = tracker._get_trackers
        self._prefilters = prefilters.in_use
        self.rewriters: list[Any] = list(dict.fromkeys(tracker.get_rewriters()))
        self.no_seconds = dict.fromkeys(self.rewriters, 0.0)
        self.no_time = [0.0] * len(self.rewriters)
        # By the address of a rewriter: that as a candidate, and what it wants of an op.
        self._entries = {
            id(rw): ((rw, number, _is_plain(rw), prefilters.WHATEVER), prefilters.wants_by(rw))
            for number, rw in enumerate(self.rewriters)
        }
        self._were = [(rw, vars(rw), *_parts(rw)) for rw in self.rewriters]
        self._transforms = _transforms_as_stock()
        self._known: _OfOps[list[_Candidate]] = _OfOps(
            _Kinds(
                tracker.tracked_instances,
                tuple(tracker.tracked_pattern_types),
                prefilters.TOLD_APART if self._prefilters else (),
            )
        )
        # Each list once, by the addresses of its rewriters and what they want.
        self._lists: dict[tuple[int, ...], list[_Candidate]] = {}
        # By the address of a list, which is kept.
        self._wants: dict[int, prefilters.Wants] = {}

    def __reduce__(self) -> Any:
        # Copies of a tracker find out for themselves.
        return dict, ()

    def is_of(self, tracker: Any) -> bool:
        """Whether nobody has added a rewriter since, or given one another method."""
        if (
            self.mro is not tracker._cached_composed_mro
            or self.mro is None
            or self._prefilters is not prefilters.in_use
            or self._transforms is not _transforms_as_stock()
        ):
            return False
        for rewriter, own, class_, function in self._were:
            if type(rewriter) is not class_ or own.get("fn") is not function or _TRANSFORM in own:
                return False
        return True

    def candidate(self, rewriter: Any) -> _Candidate:
        """Return what there is of a rewriter of the tracker, which wants nothing in particular."""
        return self._entries[id(rewriter)][0]

    def candidates(self, op: Op) -> list[_Candidate]:
        """Return the rewriters that the tracker finds for an op, in order.

        Those are left out that can do nothing with it.
        """
        found = self._known.get(op)
        if found is None:
            found = self._new(op)
            self._known.remember(op, found)
        return found

    def has(self, op: Op) -> bool:
        """Whether there are none."""
        return not self.candidates(op)

    def wants(self, op: Op) -> prefilters.Wants:
        """Return what at least one of them wants of nodes of an op."""
        candidates = self.candidates(op)
        wants = self._wants.get(id(candidates))
        if wants is None:
            wanted = [wants for *_, wants in candidates]
            wants = prefilters.WHATEVER if prefilters.WHATEVER in wanted else reduce(or_, wanted, 0)
            self._wants[id(candidates)] = wants
        return wants

    def _new(self, op: Op) -> list[_Candidate]:
        rewriters = self._find(op)
        entries = self._entries
        key: list[int] = []
        found: list[_Candidate] = []
        for rewriter in rewriters:
            candidate, wants_by = entries[id(rewriter)]
            if wants_by is not None and candidate[2]:
                wants = wants_by(op)
                if wants == prefilters.NOTHING:
                    continue
                if wants:
                    candidate = *candidate[:3], wants
                    key.append(wants)
            key.append(-candidate[1])
            found.append(candidate)
        return self._lists.setdefault(tuple(key), found)


def _parts(rewriter: Any) -> tuple[type, Any]:
    return type(rewriter), vars(rewriter).get("fn")


def _transforms_as_stock() -> bool:
    return does_as(FromFunctionNodeRewriter.transform, _stock_transform)


_FOUND = "_pytensor_fuse_found"


def found_by(tracker: Any) -> _Found:
    """Return what is known of what a tracker finds."""
    kept: Any = vars(tracker).get(_FOUND)
    if type(kept) is _Found and kept.is_of(tracker):
        return kept
    found = vars(tracker)[_FOUND] = _Found(tracker)
    return found


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
    is_stock = _processes_as_stock(self)
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
    of_op: dict[int, tuple[list[_Candidate], Op]] = {}
    spent = found.no_time.copy()
    asks_trackers = not _has_own_lookup(tracker)

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
                if tracker._cached_composed_mro is not found.mro:
                    # A rewriter has been added.
                    note_seconds()
                    found = found_by(tracker)
                    spent = found.no_time.copy()
                    of_op.clear()
                candidates: Any
                if asks_trackers or not _has_own_lookup(tracker) or not is_stock:
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
                        node_rewriter_change = _replace(
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


def patch() -> Patch:
    """Return the patch."""
    return Together(
        [
            DropIn(FromFunctionNodeRewriter, "transform", transform_tracked),
            DropIn(NodeProcessingGraphRewriter, "process_node", process_node),
            DropIn(WalkingGraphRewriter, "apply", walk),
            DropIn(EquilibriumGraphRewriter, "apply", reach_equilibrium),
        ]
    )
