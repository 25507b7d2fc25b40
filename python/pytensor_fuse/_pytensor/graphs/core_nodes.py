"""The node that a Blockwise applies at each index of its batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.tensor.blockwise import Blockwise


def core_node(op: Blockwise, node: Apply[Any]) -> Apply[Any]:
    """Return a node of the core op, on inputs of the types that they have in a Blockwise.

    Inputs that are the same for the whole batch are not replaced by placeholders.
    """
    made: Any = op
    found: Apply[Any] = made._create_dummy_core_node(
        node.inputs, propagate_unbatched_core_inputs=True
    )
    return found
