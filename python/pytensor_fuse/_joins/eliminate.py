"""What the pass `join_buffer_elimination` does: kernels of joined streams write into the result.

The graph is changed here, each join wholly or not at all: `planning` decides, `replacements` makes
the new nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.utils import InconsistencyError

from pytensor_fuse._joins.ops.elemwise import WriteElemwise
from pytensor_fuse._joins.overwriting import overwrite_inputs
from pytensor_fuse._joins.planning.assignments import plan_assignment
from pytensor_fuse._joins.planning.costs import is_vector_of_kernels
from pytensor_fuse._joins.planning.joins import plan_join
from pytensor_fuse._joins.plans import Compilation, JoinPlan, JoinReason
from pytensor_fuse._joins.replacements import Replacements
from pytensor_fuse._joins.reports import JoinReport, note_reports, report_of
from pytensor_fuse._joins.thresholds import DEFAULT_THRESHOLDS, Thresholds
from pytensor_fuse._pytensor.ops import assigns, is_join
from pytensor_fuse._pytensor.targets import Target, resolve_target

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

    The outermost of nested joins comes first and takes the others in. A join that a feature of
    ``fgraph`` refuses to have changed stays as it is. A graph of m joins and n nodes takes time
    O(m + n) as long as all changes together are accepted, which is asked once, and O(mn) otherwise,
    when it is asked for each join.

    Parameters
    ----------
    fgraph
        The graph, which is changed.
    target
        Who compiles its kernels.
    reuse
        Whether C code keeps the results' memory.
    thresholds
        What is large enough to gain; None for what was found to be.
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
    """Return the target that ``fgraph`` is being compiled for, or the one noted."""
    target = resolve_target(None, fgraph)
    return Target(noted) if target is Target.STRICT else target


def needs_numba(fgraph: FunctionGraph, target: Target) -> bool:
    """Whether what may be put into ``fgraph`` is compiled by Numba: it loads in seconds."""
    return target is Target.NUMBA and any(
        is_join(node) or assigns(node.op) for node in fgraph.apply_nodes
    )


def _eliminate_each(
    compilation: Compilation, reuse: bool, replace: Callable[..., bool | None]
) -> tuple[JoinReport, ...]:
    """Eliminate joins by ``replace``, which may return False if it leaves the graph as it was."""
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
    """Return the plan of what joins streams; None of any other node."""
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
