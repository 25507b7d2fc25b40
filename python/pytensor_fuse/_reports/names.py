"""Names of ops and nodes by which readers of a report can find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.tensor.blockwise import Blockwise

from pytensor_fuse._reports.text import short

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply

# An op's text is shown up to this length.
_LONGEST_NAME = 40


def node_name(position: int, node: Apply[Any]) -> str:
    """Return the position of a node in the run, its op, and the name of its result, if any."""
    named = next((v.name for v in node.outputs if v.name is not None), None)
    return f"{position}: {op_name(node.op)}" + ("" if named is None else f" [{short(named)}]")


def op_name(op: Any) -> str:
    """Return the printed op, or its class if that is long."""
    text = short(op)
    if len(text) <= _LONGEST_NAME and "{...}" not in text:
        return text
    if isinstance(op, Blockwise):
        return f"Blockwise{{{op_name(op.core_op)}}}"
    return type(op).__name__
