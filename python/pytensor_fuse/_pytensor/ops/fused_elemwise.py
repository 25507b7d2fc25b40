"""Facts about fused Elemwise ops, also those that Numba has wrapped, as in PyTensor 3.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable


def is_fused_elemwise(op: object) -> bool:
    """Whether ``op`` is an Elemwise wrapped into an inner graph, as Numba has them in 3.3.

    It may index and reduce in its loop, or have scalars that are no arrays as inputs and outputs.
    """
    return type(op).__name__ in ("FusedElemwise", "ScalarizedElemwise")


def is_kernel(op: Any) -> bool:
    """Whether ``op`` is the result of an earlier fusion: several scalar ops in one loop.

    A single scalar op that PyTensor has joined with an index or a sum is not.
    """
    ops = [node.op for node in op.fgraph.apply_nodes] if is_fused_elemwise(op) else [op]
    return any(isinstance(o, Elemwise) and isinstance(o.scalar_op, Composite) for o in ops)


def indexes(op: object) -> bool:
    """Whether such an Elemwise indexes or reduces."""
    return type(op).__name__ == "FusedElemwise"


def index_inputs(node: Apply[Any]) -> list[Variable[Any, Any]]:
    """Return the arrays of indices that such an Elemwise reads.

    Its inputs are those of the Elemwise, the indices, and the arrays that it assigns to.
    """
    op: Any = node.op
    n_indices = len(getattr(op, "indexed_inputs", ()))
    n_targets = sum(entry is not None for entry in getattr(op, "indexed_outputs", ()))
    first = len(node.inputs) - n_indices - n_targets
    return list(node.inputs[first : first + n_indices])


def indexed_outputs(op: Any) -> dict[int, str]:
    """Return how such an Elemwise assigns, by output: ``"inc"`` or ``"set"``."""
    entries = getattr(op, "indexed_outputs", ())
    return {i: mode for sources, _, mode in filter(None, entries) for i in sources}
