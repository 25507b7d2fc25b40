"""Names of ops and nodes by which a reader of a report can find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.tensor.blockwise import Blockwise

from pytensor_fuse._reports.text import short

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply

# What an op prints is shown up to this length.
_LONGEST_NAME = 40


def node_name(position: int, node: Apply[Any]) -> str:
    """Return the place of a node in the run, its op, and what its result is called, if it is."""
    named = next((v.name for v in node.outputs if v.name is not None), None)
    return f"{position}: {op_name(node.op)}" + ("" if named is None else f" [{short(named)}]")


def op_name(op: Any) -> str:
    """Return what an op prints, if that is short, or else its class."""
    text = short(op)
    if len(text) <= _LONGEST_NAME and "{...}" not in text:
        return text
    if isinstance(op, Blockwise):
        return f"Blockwise{{{op_name(op.core_op)}}}"
    return type(op).__name__
