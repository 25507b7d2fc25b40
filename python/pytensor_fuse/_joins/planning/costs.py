"""Cost model of writing streams in place: see benchmarks/README.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pytensor.scalar import basic as ps
from pytensor.tensor.basic import MakeVector
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._joins.lengths import n_elements
from pytensor_fuse._pytensor.ops.targets import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph

    from pytensor_fuse._joins.plans import Compilation, Stream
    from pytensor_fuse._joins.thresholds import Thresholds

# A kernel of only these ops is vectorized, so the layout of elements in memory matters.
_VECTORIZED = (
    *(ps.Abs, ps.Add, ps.Identity, ps.Mul, ps.Neg, ps.Sqr, ps.Sqrt, ps.Sub, ps.TrueDiv),
    *(ps.Cast, ps.LogicalComparison, ps.ScalarMaximum, ps.ScalarMinimum, ps.Second, ps.Switch),
)


def is_small(shape: Sequence[int | None], thresholds: Thresholds) -> bool:
    """Return whether a result of this shape is known to be too small to gain."""
    total = n_elements(shape)
    return total is not None and total < thresholds.min_elements


def is_vector_of_kernels(node: Apply[Any]) -> bool:
    """Return whether a node makes a vector of single numbers that kernels compute.

    Copies of the numbers cost less than parts and kernels that read them as arrays. Vectors of
    shapes do not count.
    """
    return (
        isinstance(node.op, MakeVector)
        and node.outputs[0].type.dtype.startswith("float")
        and any(v.owner is not None and isinstance(v.owner.op, Elemwise) for v in node.inputs)
    )


def n_written_elements(streams: Sequence[Stream]) -> int:
    """Return the number of elements that kernels are known to write, if nothing fails."""
    total = 0
    for stream in streams:
        shape = stream.variable.type.shape
        if stream.slot is not None and shape[0] is None and stream.slot.stop is not None:
            shape = (stream.slot.stop - stream.slot.start, *(n or 1 for n in shape[1:]))
        total += (n_elements(shape) or 0) if stream.written else 0
    return total


def least_written_elements(compilation: Compilation, streams: Sequence[Stream], ndim: int) -> int:
    """Return the least number of known elements that kernels must write for a gain."""
    thresholds = compilation.thresholds
    if compilation.target is Target.PYTHON:
        return thresholds.min_written_in_python
    if compilation.target is not Target.NUMBA:
        return 0
    kernels = dict.fromkeys(stream.kernel for stream in streams if stream.kernel is not None)
    n_in_place = sum(_can_overwrite(compilation.fgraph, kernel) for kernel in kernels)
    n_saved = sum(stream.written for stream in streams) - n_in_place
    is_few = n_saved < (2 if ndim == 1 else 3) or 2 * n_saved < len(streams)
    # Numba's Join takes single elements as scalars, without allocating arrays for them.
    has_scalars = any(n_elements(s.variable.type.shape) == 1 for s in streams if not s.written)
    return thresholds.min_written if is_few or has_scalars else 0


def interleaves(compilation: Compilation, stream: Stream, axis: int) -> bool:
    """Return whether a kernel loses more time on a part of separate rows than it saves."""
    thresholds = compilation.thresholds
    shape = stream.variable.type.shape
    row = n_elements(shape[axis:])
    if compilation.target is not Target.NUMBA:
        return row is not None and row < thresholds.min_row
    return (
        (row is None or row > thresholds.max_short_row)
        and (n_elements(shape) or 0) < thresholds.min_interleaved
        and _is_vectorized(cast("Apply[Any]", stream.kernel))
    )


def _can_overwrite(fgraph: FunctionGraph, kernel: Apply[Any]) -> bool:
    """Return whether PyTensor can save an output of a kernel by overwriting an input."""
    if not isinstance(kernel.op, Elemwise):
        return False
    outputs = [(v.type.dtype, v.type.broadcastable) for v in kernel.outputs]
    taken = kernel.op.inplace_pattern.values()
    return any(
        v.owner is not None
        and i not in taken
        and not v.owner.op.view_map
        and len(fgraph.clients[v]) == 1
        and (v.type.dtype, v.type.broadcastable) in outputs
        for i, v in enumerate(kernel.inputs)
    )


def _is_vectorized(kernel: Apply[Any]) -> bool:
    if not isinstance(kernel.op, Elemwise):
        return False
    scalar_op = kernel.op.scalar_op
    if isinstance(scalar_op, ps.Composite):
        nodes = cast("FrozenFunctionGraph", scalar_op.fgraph).toposort()
        return all(isinstance(node.op, _VECTORIZED) for node in nodes)
    return isinstance(scalar_op, _VECTORIZED)
