"""Nodes whose purpose is to copy, and reasons for the copies."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pytensor.compile.ops import DeepCopyOp
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.basic import Alloc

from pytensor_fuse._audit.sections.memory.allocation import use_of
from pytensor_fuse._audit.sections.memory.record import Copy, CopyKind
from pytensor_fuse._pytensor.ops.versions_of_ops import assigns, is_join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytensor_fuse._audit.context.graph import GraphContext
    from pytensor_fuse._joins.reports import JoinReport


def reasons_of_joins(reports: Iterable[JoinReport]) -> dict[str, str]:
    """Return the reasons why joins were not eliminated, by the texts of the joins.

    Reports identify joins by their texts; the reason for joins with equal texts is only known if
    it is the same for all.
    """
    reasons: defaultdict[str, set[str]] = defaultdict(set)
    for report in reports:
        if not report.eliminated:
            reasons[report.join].add(report.reason.value)
    return {join: next(iter(found)) for join, found in reasons.items() if len(found) == 1}


def copies(graph: GraphContext, why_joins: dict[str, str]) -> Iterator[Copy]:
    """Iterate over the nodes of a graph whose purpose is to copy."""
    sharing = _sharing(graph)
    for node in graph.order:
        op = node.op
        why = ""
        if is_join(node):
            kind = CopyKind.JOIN
            why = why_joins.get(str(node), "")
        elif assigns(op) and not op.destroy_map:
            kind = CopyKind.ASSIGNMENT
        elif isinstance(op, Alloc):
            kind = CopyKind.FILL
        elif isinstance(op, DeepCopyOp):
            kind = CopyKind.BOUNDARY
            why = _why_copied(graph, node, sharing)
        else:
            continue
        yield Copy(graph.name(node), graph.path, kind, graph.nbytes(node.outputs[0]), why)


def _sharing(graph: GraphContext) -> dict[Variable[Any, Any], list[int]]:
    """Return for each variable the outputs that share its memory, or are copied from it."""
    sharing: defaultdict[Variable[Any, Any], list[int]] = defaultdict(list)
    if any(isinstance(node.op, DeepCopyOp) for node in graph.order):
        for i, output in enumerate(graph.fgraph.outputs):
            sharing[_memory_of(_uncopied(output))].append(i)
    return sharing


def _why_copied(
    graph: GraphContext, node: Apply[Any], sharing: dict[Variable[Any, Any], list[int]]
) -> str:
    """Return what a result that is copied at the boundary shares memory with, in words."""
    copied = node.inputs[0]
    root = _memory_of(copied)
    view = "" if root is copied else "declared a view of "
    if isinstance(root, Constant):
        return f"it is {view}a constant"
    if root.owner is None:
        return (
            f"it is {view}the input {graph.variable_name(root)}; "
            "In(..., borrow=True) and Out(..., borrow=True) leave that to you"
        )
    outputs = graph.fgraph.outputs
    other = next((i for i in sharing.get(root, ()) if outputs[i].owner is not node), None)
    return "" if other is None else f"it shares memory with output {other}"


def _uncopied(variable: Variable[Any, Any]) -> Variable[Any, Any]:
    if variable.owner is not None and isinstance(variable.owner.op, DeepCopyOp):
        copied: Variable[Any, Any] = variable.owner.inputs[0]
        return copied
    return variable


def _memory_of(variable: Variable[Any, Any]) -> Variable[Any, Any]:
    """Return the variable that owns the memory of a variable, through views and work in place."""
    while variable.owner is not None:
        _, source = use_of(variable.owner, variable.owner.outputs.index(variable))
        if source is None:
            return variable
        variable = variable.owner.inputs[source]
    return variable
