"""Facts about PyTensor's ops on arrays whose class or signature depends on the version."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Constant
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor, IncSubtensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph

_GIVES_GRAPH = "fgraph" in inspect.signature(Shape_i.infer_shape).parameters


def is_join(node: Apply[Any]) -> bool:
    """Whether ``node`` is a Join, of PyTensor's own class."""
    return type(node.op) is Join


def join_operands(node: Apply[Any]) -> tuple[int | None, list[Variable[Any, Any]]]:
    """Return the axis of a Join, or None if it is computed, and the joined variables.

    The axis is a property of the op in 3.3, an input in 3.0.
    """
    axis = getattr(node.op, "axis", None)
    if axis is not None:
        return int(axis), list(node.inputs)
    first, *operands = node.inputs
    if not isinstance(first, Constant):
        return None, operands
    return int(first.data) % node.outputs[0].type.ndim, operands


def joins_all_dims(node: Apply[Any]) -> bool:
    """Whether ``node`` flattens all dimensions of its input into a vector, as an op of 3.3 can."""
    return (
        type(node.op).__name__ == "JoinDims"
        and node.outputs[0].type.ndim == 1
        and node.inputs[0].type.ndim >= 1
    )


def reshapes(op: object) -> bool:
    """Whether ``op`` joins or splits dimensions, as ops of 3.3 do, with a view where possible."""
    return type(op).__name__ in ("JoinDims", "SplitDims")


def alloc_broadcast_message() -> str:
    """Return Alloc's message for a value that would have to be broadcast, but is not marked so."""
    message: str = Alloc._runtime_broadcast_error_msg
    return message


def takes_along_first(op: object) -> bool:
    """Whether ``op`` indexes the first dimension with an array; in 3.0 this is a separate op."""
    if type(op).__name__ == "AdvancedSubtensor1":
        return True
    return isinstance(op, AdvancedSubtensor) and getattr(op, "idx_list", None) == (0,)


def computes_on_demand(fgraph: FunctionGraph) -> bool:
    """Whether some nodes of a graph may not run, because its conditions take one branch."""
    # Its module in 3.3 differs from that in 3.0.
    return any(type(node.op).__name__ in ("IfElse", "LazyIfElse") for node in fgraph.apply_nodes)


def assigns(op: object) -> bool:
    """Whether ``op`` assigns to elements of its first input; in 3.0 this may be a separate op."""
    return (
        isinstance(op, IncSubtensor | AdvancedIncSubtensor)
        or type(op).__name__ == "AdvancedIncSubtensor1"
    )


def infer_shape(node: Apply[Any], shapes: list[Any]) -> Any:
    """Ask the op of ``node`` for the shapes of its outputs; None if they are unknown.

    The method of 3.0 also takes a graph, in which it may look up shapes; here it receives none.
    """
    ask = getattr(node.op, "infer_shape", None)
    if ask is None:
        return None
    return ask(None, node, shapes) if _GIVES_GRAPH else ask(node, shapes)


def shape_inference(method: Callable[[Any, Any, Any], Any]) -> Any:
    """Turn a function of ``(self, node, shapes)`` into an op's method ``infer_shape``.

    PyTensor 3.0 passes the graph as well.
    """
    if not _GIVES_GRAPH:
        return method

    @wraps(method)
    def infer_shape_in_graph(self: Any, fgraph: Any, node: Any, shapes: Any) -> Any:
        return method(self, node, shapes)

    return infer_shape_in_graph
