"""What differs between the supported versions of PyTensor, and nothing else."""

from __future__ import annotations

import inspect
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from pytensor.compile import mode as mode_module
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.executor import Function
from pytensor.graph import features
from pytensor.graph import op as graph_op
from pytensor.graph.basic import Constant, FrozenApply
from pytensor.graph.fg import FrozenFunctionGraph, Output
from pytensor.graph.op import HasInnerGraph
from pytensor.scalar.basic import ScalarOp
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Join
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor, IncSubtensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.compile.mode import Mode
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph

# Features of PyTensor that refuse nodes for what they write over; 3.3 has one more.
INPLACE_VALIDATORS: tuple[type, ...] = tuple(
    getattr(features, name)
    for name in ("NoOutputFromInplace", "NoOutputInplaceOnInput")
    if hasattr(features, name)
)

# Ops that are made of graphs; 3.3 has branches that are.
GRAPH_OPS: tuple[type, ...] = (OpFromGraph, Scan)
if find_spec("pytensor.conditional"):
    GRAPH_OPS = (*GRAPH_OPS, import_module("pytensor.conditional.op").LazyIfElse)

_HAS_INNER_GRAPHS: Any = getattr(graph_op, "HasMultipleInnerGraph", HasInnerGraph)

_GIVES_GRAPH = "fgraph" in inspect.signature(Shape_i.infer_shape).parameters

# Rewriters that only hand on to another, and say for which mode: 3.3 wraps the optimizer of a mode.
WRAPPERS: tuple[type, ...] = tuple(
    getattr(mode_module, name)
    for name in ("_ActiveModeGraphRewriter",)
    if hasattr(mode_module, name)
)


def compile_mode(fgraph: FunctionGraph) -> Mode | None:
    """Return the mode that ``fgraph`` is being compiled for, if PyTensor says so (3.3 does)."""
    return getattr(fgraph, "_compile_mode", None)


def frozen_graph(
    inputs: tuple[Variable[Any, Any], ...],
    nodes: tuple[FrozenApply, ...],
    outputs: Sequence[Variable[Any, Any]],
) -> FrozenFunctionGraph:
    """Assemble a frozen graph from its interned parts, ``nodes`` in topological order.

    PyTensor 3.3 takes the parts as they are; 3.0 finds the nodes again itself.
    """
    make: Any = FrozenFunctionGraph
    if not hasattr(FrozenFunctionGraph, "from_io"):
        return cast("FrozenFunctionGraph", make(inputs, outputs))
    output_nodes = tuple(FrozenApply(Output(i), (out,), ()) for i, out in enumerate(outputs))
    return cast("FrozenFunctionGraph", make(inputs, nodes, output_nodes))


def is_join(node: Apply[Any]) -> bool:
    """Whether ``node`` is a Join, of PyTensor's own class."""
    return type(node.op) is Join


def join_operands(node: Apply[Any]) -> tuple[int | None, list[Variable[Any, Any]]]:
    """Return the axis of a Join, or None if that is computed, and what it joins.

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
    """Whether ``node`` makes a vector of all dimensions of its input, as an op of 3.3 can."""
    return (
        type(node.op).__name__ == "JoinDims"
        and node.outputs[0].type.ndim == 1
        and node.inputs[0].type.ndim >= 1
    )


def takes_along_first(op: object) -> bool:
    """Whether ``op`` indexes the first dimension with an array, in 3.0 by an op of its own."""
    if type(op).__name__ == "AdvancedSubtensor1":
        return True
    return isinstance(op, AdvancedSubtensor) and getattr(op, "idx_list", None) == (0,)


def assigns(op: object) -> bool:
    """Whether ``op`` assigns to elements of its first input, in 3.0 also by an op of its own."""
    return (
        isinstance(op, IncSubtensor | AdvancedIncSubtensor)
        or type(op).__name__ == "AdvancedIncSubtensor1"
    )


def inner_graphs(op: Any) -> list[tuple[str, Any, Any]]:
    """Return the inner graphs of an op on arrays: name, graph, and the function that runs it.

    The graph is the one that runs: PyTensor 3.0 rewrites it when its function is made. The function
    is None where there is none yet, or where the outer one runs the graph. 3.3 has ops with several
    inner graphs.
    """
    if isinstance(op, Blockwise):
        op = op.core_op
    if isinstance(op, ScalarOp) or not isinstance(op, _HAS_INNER_GRAPHS):
        return []
    function = getattr(op, "_fn", None)
    if isinstance(function, Function):
        return [("", function.maker.fgraph, function)]
    graphs: dict[str, Any] = op.inner_graphs if hasattr(op, "inner_graphs") else {"": op.fgraph}
    return [(name, graph, None) for name, graph in graphs.items()]


def passed_inside(node: Apply[Any], graph: Any) -> dict[Variable[Any, Any], Variable[Any, Any]]:
    """Return the inputs of an inner graph that are inputs of its node, with these.

    Each time that the graph runs within a call they are the same.
    """
    op, inside = node.op, list(graph.inputs)
    if isinstance(op, Scan):
        own, outside = op.inner_non_seqs(inside), op.outer_non_seqs(node.inputs)
    elif isinstance(op, OpFromGraph):
        own, outside = inside, node.inputs
    elif isinstance(op, GRAPH_OPS):
        own, outside = inside, node.inputs[1:]
    else:
        return {}
    return dict(zip(own, outside, strict=True)) if len(own) == len(outside) else {}


def runs_once(op: object) -> bool:
    """Whether an op with inner graphs runs one of them, once."""
    return isinstance(op, GRAPH_OPS) and not isinstance(op, Scan)


def is_fused_elemwise(op: object) -> bool:
    """Whether ``op`` is an Elemwise wrapped into an inner graph, as Numba has them in 3.3.

    It may index and reduce in its loop, or take and give numbers that are no arrays.
    """
    return type(op).__name__ in ("FusedElemwise", "ScalarizedElemwise")


def indexes(op: object) -> bool:
    """Whether such an Elemwise indexes or reduces."""
    return type(op).__name__ == "FusedElemwise"


def index_inputs(node: Apply[Any]) -> list[Variable[Any, Any]]:
    """Return the arrays of indices that such an Elemwise reads.

    Its inputs are those of the Elemwise, the indices, and what it assigns to.
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


def reshapes(op: object) -> bool:
    """Whether ``op`` joins or splits dimensions, as ops of 3.3 do, by a view where it can."""
    return type(op).__name__ in ("JoinDims", "SplitDims")


def infer_shape(node: Apply[Any], shapes: list[Any]) -> Any:
    """Ask the op of ``node`` for the shapes of its outputs; None if it cannot say.

    The op of 3.0 is given a graph as well, in which it may look up more; here there is none.
    """
    ask = getattr(node.op, "infer_shape", None)
    if ask is None:
        return None
    return ask(None, node, shapes) if _GIVES_GRAPH else ask(node, shapes)


def shape_inference(method: Callable[[Any, Any, Any], Any]) -> Any:
    """Make what infers shapes from ``(self, node, shapes)`` an op's method ``infer_shape``.

    PyTensor 3.0 gives it the graph as well.
    """
    if not _GIVES_GRAPH:
        return method

    @wraps(method)
    def infer_shape_in_graph(self: Any, fgraph: Any, node: Any, shapes: Any) -> Any:
        return method(self, node, shapes)

    return infer_shape_in_graph


def is_debugged(fgraph: FunctionGraph) -> bool:
    """Whether DebugMode is compiling ``fgraph``."""
    return hasattr(fgraph, "equivalence_tracker")


# For each way in which PyTensor's own classes compare themselves, other than by ``__props__``, the
# attributes that it compares besides the class.
COMPARED: dict[str, tuple[str, ...]] = {
    f"pytensor.{name}.__eq__": attributes
    for name, attributes in {
        "compile.builders.OpFromGraph": ("fgraph", "is_inline"),
        "compile.ops.FromFunctionOp": ("_FromFunctionOp__fn",),
        "conditional.op.IfElse": ("as_view", "n_outs"),
        "graph.null_type.NullType": (),
        "ifelse.IfElse": ("as_view", "n_outs"),
        "link.c.params_type.ParamsType": ("fields", "types"),
        "link.c.type.EnumType": ("ctype", "aliases"),
        "raise_op.ExceptionType": (),
        "scalar.basic.FixedLogicalComparison": ("output_types_preference", "bool"),
        "scalar.basic.LogicalComparison": ("output_types_preference", "bool"),
        "scalar.basic.ScalarOp": ("output_types_preference",),
        "scalar.basic.unary_out_lookup": ("tbl",),
        "scalar.math.GammaInc": (),
        "scalar.math.GammaIncC": (),
        "scalar.math.GammaL": (),
        "scalar.math.GammaU": (),
        "scan.op.Scan": ("fgraph", "info", "profile", "truncate_gradient", "name", "allow_gc"),
        "sparse.type.SparseTensorType": ("dtype", "shape", "format"),
        "tensor.elemwise.Elemwise": ("scalar_op", "inplace_pattern"),
        "tensor.optimize.ScipyWrapperOp": ("fgraph",),
        "tensor.random.type.RandomGeneratorType": (),
        "tensor.type.TensorType": ("dtype", "shape"),
        "tensor.type_other.SliceType": (),
        "typed_list.type.TypedListType": ("ttype",),
        "utils.Singleton": (),
        "xtensor.random.type.XRandomGeneratorType": (),
        "xtensor.type.XTensorType": ("dtype", "shape", "dims"),
    }.items()
}

# An OpFromGraph compares what these compute, when they are called.
COMPARED_BY_CALLING = ("pullback_overrides", "pushforward_overrides")


def also_compared(value: object) -> tuple[str, ...]:
    """Return the attributes that tell this very op from others besides those of its class.

    PyTensor 3.3 has ops that name them, 3.0 lets an OpFromGraph read shared variables, and neither
    compares whether the last output of a ScalarLoop ends it.
    """
    names: tuple[str, ...] = getattr(value, "_scipy_props", ())
    more = [name for name in ("shared_inputs", "is_while") if getattr(value, name, None)]
    return (*names, *more)
