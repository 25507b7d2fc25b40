"""Single node rewriters: tried on a node, and their replacements applied, as PyTensor does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.rewriting.basic import FromFunctionNodeRewriter, NodeProcessingGraphRewriter

from pytensor_fuse._pytensor.compat.packages import does_as
from pytensor_fuse._pytensor.patching.drop_ins import in_file_of

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

STOCK_PROCESS_NODE = NodeProcessingGraphRewriter.process_node
STOCK_TRANSFORM = FromFunctionNodeRewriter.transform
PROCESS_NODE = "process_node"
TRANSFORM = "transform"


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
    return replace(self, fgraph, node, node_rewriter, replacements)


@in_file_of(NodeProcessingGraphRewriter.process_node)
def replace(
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


def processes_as_stock(rewriter: Any) -> bool:
    """Whether a pass has PyTensor's ``process_node``, its own or the one here."""
    if PROCESS_NODE in vars(rewriter):
        return False
    return does_as(type(rewriter).process_node, STOCK_PROCESS_NODE)


def is_plain(rewriter: Any) -> bool:
    """Whether a node rewriter does nothing but call its function where no tracks are enforced."""
    return (
        type(rewriter) is FromFunctionNodeRewriter
        and TRANSFORM not in vars(rewriter)
        and does_as(FromFunctionNodeRewriter.transform, STOCK_TRANSFORM)
    )


def transforms_as_stock() -> bool:
    return does_as(FromFunctionNodeRewriter.transform, STOCK_TRANSFORM)
