"""Patch that makes PyTensor keep unread inputs of a kernel that its outputs overwrite.

`local_useless_composite_outputs` removes the inputs that the scalar graph of a Composite does not
read, and rebuilds the Elemwise without its in-place pattern. An input in that pattern is not
useless even if nothing reads it, since an output is written there. While the package is on, the
rewriter keeps the patterns and such inputs of the remaining outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.rewriting.elemwise import local_useless_composite_outputs

from pytensor_fuse._pytensor.patching.patches import SwitchedClass

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph

# The object that all of PyTensor's databases share, whatever wraps it there.
_REWRITER: Any = local_useless_composite_outputs
_STOCK: Any = type(_REWRITER)


class _KeepingTargets(_STOCK):  # type: ignore[misc]
    """PyTensor's rewriter, except for kernels that work in place; it has no state of its own."""

    def transform(self, fgraph: FunctionGraph, node: Apply[Any], *args: Any, **kwargs: Any) -> Any:
        if not getattr(node.op, "inplace_pattern", None):
            return super().transform(fgraph, node, *args, **kwargs)
        return _remove_useless(fgraph, node)


# Summaries of rewriters print these names.
_KeepingTargets.__name__ = _STOCK.__name__
_KeepingTargets.__qualname__ = _STOCK.__qualname__
_KeepingTargets.transform.__qualname__ = _STOCK.transform.__qualname__


def kept_write_targets() -> SwitchedClass:
    """Return the patch that makes PyTensor's rewriter keep write targets."""
    return SwitchedClass(lambda: [_REWRITER], {_STOCK: _KeepingTargets})


def _remove_useless(fgraph: FunctionGraph, node: Apply[Any]) -> Any:
    """Remove unused outputs and inputs, except for the targets of the remaining outputs."""
    op = node.op
    if not (isinstance(op, Elemwise) and isinstance(op.scalar_op, Composite)):
        return None
    scalars = cast("FrozenFunctionGraph", op.scalar_op.fgraph).unfreeze()
    outputs = [i for i, output in enumerate(node.outputs) if fgraph.clients[output]]
    targets = {i: op.inplace_pattern[i] for i in outputs if i in op.inplace_pattern}
    read = set(ancestors([scalars.outputs[i] for i in outputs]))
    inputs = [
        i for i, scalar in enumerate(scalars.inputs) if scalar in read or i in targets.values()
    ]
    if len(inputs) == len(node.inputs) and len(outputs) == len(node.outputs):
        return None
    kernel = type(op)(
        Composite([scalars.inputs[i] for i in inputs], [scalars.outputs[i] for i in outputs]),
        {outputs.index(i): inputs.index(target) for i, target in targets.items()},
        openmp=op.openmp,
    ).make_node(*(node.inputs[i] for i in inputs))
    return {node.outputs[i]: new for i, new in zip(outputs, kernel.outputs, strict=True)}
