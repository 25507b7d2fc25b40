"""Sources of the memory of results, as declared by their ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.compile.ops import DeepCopyOp
from pytensor.scan.op import Scan
from pytensor.tensor.blas import Gemv
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.type import TensorType

from pytensor_fuse._audit.sections.memory.in_place import Aliases, missed_inputs
from pytensor_fuse._audit.sections.memory.record import Missed, Result, Use
from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._pytensor.ops.fused_elemwise import is_fused_elemwise
from pytensor_fuse._pytensor.ops.targets import Target
from pytensor_fuse._pytensor.ops.versions_of_ops import assigns, reshapes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply

    from pytensor_fuse._audit.context.graph import GraphContext


def results(graph: GraphContext, aliases: Aliases) -> Iterator[Result]:
    """Iterate over the tensors that the nodes of a graph compute."""
    for node in graph.order:
        for output, variable in enumerate(node.outputs):
            if not isinstance(variable.type, TensorType):
                continue
            use, source = use_of(node, output)
            missed: tuple[Missed, ...] = ()
            # Copies are intentional.
            copies = isinstance(node.op, DeepCopyOp)
            if use is Use.ALLOCATED and not graph.path and not copies:
                missed = tuple(missed_inputs(graph, aliases, node, output))
            yield Result(
                node=graph.name(node),
                path=graph.path,
                output=output,
                use=use,
                source=source,
                may_copy=may_copy(graph, node, use),
                nbytes=graph.nbytes(variable),
                missed=missed,
            )


def use_of(node: Apply[Any], output: int) -> tuple[Use, int | None]:
    """Return the source of an output's memory, and the input that shares it, if any."""
    for use, of_op in ((Use.IN_PLACE, node.op.destroy_map), (Use.VIEW, node.op.view_map)):
        if output in of_op:
            return use, of_op[output][0]
    return Use.ALLOCATED, None


def may_copy(graph: GraphContext, node: Apply[Any], use: Use) -> bool:
    """Return whether a result that is declared a view or in place may have memory of its own."""
    if use is Use.ALLOCATED:
        return False
    if use is Use.IN_PLACE:
        if isinstance(node.op, Elemwise | Scan | WriteJoin) or assigns(node.op):
            return False
        if is_fused_elemwise(node.op):
            return False
        # Others declare that they may overwrite an input: LAPACK needs column-major arrays, and
        # Python's BLAS wrappers copy arrays of an unsuitable layout.
        compiled = graph.target in (Target.C, Target.NUMBA)
        return not (compiled and isinstance(node.op, Gemv))
    if is_picked(node):
        # NumPy returns a scalar, C code a view.
        return True
    if isinstance(node.op, Scan):
        # A scan of no steps returns its initial state; Numba always copies it.
        return True
    # Reshaping copies arrays that are not contiguous.
    if not (isinstance(node.op, Reshape) or reshapes(node.op)):
        return False
    made = node.inputs[0].owner
    # Newly allocated vectors are contiguous.
    return made is None or node.inputs[0].type.ndim != 1 or use_of(made, 0)[0] is not Use.ALLOCATED


def is_picked(node: Apply[Any]) -> bool:
    """Return whether the result is one element of an array."""
    return isinstance(node.op, Subtensor) and node.outputs[0].type.ndim == 0
