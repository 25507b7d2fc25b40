"""The pass `join_buffer_elimination`: kernels of joined streams write into the result.

This module changes the graph, each join completely or not at all; `planning` decides, and
`replacements` makes the new nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.utils import InconsistencyError

from pytensor_fuse._joins.notes import note_reports
from pytensor_fuse._joins.ops.elemwise import WriteElemwise
from pytensor_fuse._joins.overwriting import overwrite_inputs
from pytensor_fuse._joins.planning.assignments import plan_assignment
from pytensor_fuse._joins.planning.costs import is_vector_of_kernels
from pytensor_fuse._joins.planning.joins import plan_join
from pytensor_fuse._joins.plans import Compilation, JoinPlan, JoinReason
from pytensor_fuse._joins.replacements import Replacements
from pytensor_fuse._joins.reports import JoinReport, report_of
from pytensor_fuse._joins.thresholds import DEFAULT_THRESHOLDS, Thresholds
from pytensor_fuse._pytensor.ops.targets import Target, resolve_target
from pytensor_fuse._pytensor.ops.versions_of_ops import assigns, is_join

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

_NAME = "join_buffer_elimination"


def eliminate_joins(
    fgraph: FunctionGraph,
    target: Target,
    *,
    reuse: bool = False,
    thresholds: Thresholds | None = None,
) -> tuple[JoinReport, ...]:
    """Let kernels write into the results of joins, and return a report on each join.

    The outermost of nested joins comes first and absorbs the others. If a feature of ``fgraph``
    refuses the change of a join, that join is kept. A graph of m joins and n nodes takes time
    O(m + n) if a single validation accepts all changes, and O(mn) otherwise, with a validation for
    each join.

    Parameters
    ----------
    fgraph
        The graph, which is changed.
    target
        The compiler of its kernels.
    reuse
        Whether C code keeps the memory of results for the next call.
    thresholds
        The sizes from which elimination pays; None for the measured defaults.
    """
    compilation = Compilation(fgraph, target, thresholds or DEFAULT_THRESHOLDS)
    start = fgraph.checkpoint()
    try:
        reports = _eliminate_each(compilation, reuse, fgraph.replace_all)
        fgraph.validate()
    except BaseException as error:
        fgraph.revert(start)
        if not isinstance(error, InconsistencyError):
            raise
        reports = _eliminate_each(compilation, reuse, _replacing_if_valid(fgraph))
    for node in fgraph.toposort():
        if isinstance(node.op, WriteElemwise):
            overwrite_inputs(fgraph, node, _NAME)
    note_reports(fgraph, reports)
    return reports


def compile_target(fgraph: FunctionGraph, noted: str) -> Target:
    """Return the target that ``fgraph`` is being compiled for, or ``noted`` if it is unknown."""
    target = resolve_target(None, fgraph)
    return Target(noted) if target is Target.STRICT else target


def needs_numba(fgraph: FunctionGraph, target: Target) -> bool:
    """Return whether the pass may need Numba for ``fgraph``, which takes seconds to load."""
    return target is Target.NUMBA and any(
        is_join(node) or assigns(node.op) for node in fgraph.apply_nodes
    )


def _eliminate_each(
    compilation: Compilation, reuse: bool, replace: Callable[..., bool | None]
) -> tuple[JoinReport, ...]:
    """Eliminate joins by ``replace``, which returns False if it leaves the graph unchanged."""
    fgraph = compilation.fgraph
    replacements = Replacements(fgraph, reuse=reuse)
    reports = []
    for node in reversed(fgraph.toposort()):
        if node not in fgraph.apply_nodes:
            continue
        plan = _plan(compilation, node)
        if plan is None:
            continue
        reason = plan.reason
        if plan.eliminated and replace(replacements.of(plan), reason=_NAME) is False:
            reason = JoinReason.REFUSED
        reports.append(report_of(plan, str(node), reason))
    return tuple(reports)


def _plan(compilation: Compilation, node: Apply[Any]) -> JoinPlan | None:
    """Return the plan for a node that joins streams, and None for any other node."""
    if is_join(node):
        return plan_join(compilation, node)
    if is_vector_of_kernels(node):
        return JoinPlan(node, 0, (), JoinReason.SCALARS)
    return plan_assignment(compilation, node)


def _replacing_if_valid(fgraph: FunctionGraph) -> Callable[..., bool]:
    def replace(changes: Any, reason: str) -> bool:
        try:
            fgraph.replace_all_validate(changes, reason=reason)
        except InconsistencyError:
            return False
        return True

    return replace
