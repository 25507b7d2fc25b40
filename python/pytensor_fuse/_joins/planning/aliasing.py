"""In-place assignments: whether assigning in the memory of the tensor itself copies less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Constant

from pytensor_fuse._joins.lengths import n_elements
from pytensor_fuse._joins.planning.costs import n_written_elements
from pytensor_fuse._pytensor.graphs.overwritable import protected_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._joins.plans import Stream


def overwrites_for_less(
    fgraph: FunctionGraph, tensor: Variable[Any, Any], streams: Sequence[Stream]
) -> bool:
    """Return whether PyTensor can assign in place and thereby copies less than a join would.

    It can if nothing else reads ``tensor``, and if the function may overwrite its memory.
    """
    if len(fgraph.clients[tensor]) > 1 or _is_protected(fgraph, tensor):
        return False
    copied = [n_elements(s.variable.type.shape) for s in streams if not s.written]
    if None in copied:
        return True
    return sum(n for n in copied if n) > n_written_elements(streams)


def _is_protected(fgraph: FunctionGraph, variable: Variable[Any, Any]) -> bool:
    """Return whether the function must not overwrite the memory of a variable."""
    root = variable
    while root.owner is not None:
        viewed = root.owner.op.view_map.get(root.owner.outputs.index(root))
        if not viewed:
            return False
        root = root.owner.inputs[viewed[0]]
    return isinstance(root, Constant) or root in (protected_inputs(fgraph) or ())
