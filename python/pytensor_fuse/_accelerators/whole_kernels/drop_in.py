"""The rewriter that takes from kernels what nobody reads, for kernels all of which is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.tensor.rewriting.elemwise import local_useless_composite_outputs

from pytensor_fuse._pytensor.patching.drop_ins import DropIn

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._pytensor.patching.patches import Patch

_stock: Any = local_useless_composite_outputs.fn


def the_rewriter() -> Any:
    """Return PyTensor's rewriter."""
    return local_useless_composite_outputs


def remove_useless(fgraph: FunctionGraph, node: Apply[Any]) -> Any:
    """Do as `local_useless_composite_outputs`.

    It imports the scalar graph of each kernel into a graph of its own, to learn that all of it is
    read.
    """
    clients = fgraph.clients
    for output in node.outputs:
        if not clients[output]:
            return _stock(fgraph, node)
    return None if _reads_all(node.op.scalar_op) else _stock(fgraph, node)


def _reads_all(composite: Any) -> bool:
    """Whether the outputs of a scalar graph are computed from all of its inputs, by identity.

    O(nodes + edges) at most; it ends where all inputs have been met.
    """
    missing = {id(variable) for variable in composite.inputs}
    if len(missing) != len(composite.inputs):
        return False
    known: set[int] = set()
    pending = list(composite.outputs)
    while pending and missing:
        variable = pending.pop()
        address = id(variable)
        if address in known:
            continue
        known.add(address)
        missing.discard(address)
        owner = variable.owner
        if owner is not None:
            pending.extend(owner.inputs)
    return not missing


def patch() -> Patch:
    """Return the patch."""
    return DropIn(the_rewriter(), "fn", remove_useless)
