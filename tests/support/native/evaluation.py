"""Graphs evaluated node by node as in the Python linker, except for kernels.

The Python linker evaluates a kernel on Python's numbers one by one, which are doubles and unbounded
integers only. Here, its ops run on whole arrays, by NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import Add, Composite, IntDiv, Mul, Reciprocal, ScalarOp
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph

    Values = dict[Variable, Any]


def value_of(variable: Variable, values: Values) -> Any:
    """Return the value of a variable: a constant, or a computed value."""
    return variable.data if isinstance(variable, Constant) else values[variable]


def evaluate_nodes(nodes: Iterable[Apply], values: Values) -> None:
    """Compute the outputs of nodes, in their order, from the values of their inputs."""
    with np.errstate(all="ignore"):
        for node in nodes:
            given = [value_of(one, values) for one in node.inputs]
            values.update(zip(node.outputs, _outputs(node, given), strict=True))


def evaluate(fgraph: FunctionGraph, given: Sequence[Any]) -> list[np.ndarray]:
    """Return the outputs of a graph from values of its inputs, which may be overwritten."""
    values = dict(zip(fgraph.inputs, given, strict=True))
    evaluate_nodes(fgraph.toposort(), values)
    return [np.asarray(value_of(one, values)) for one in fgraph.outputs]


def failures(fgraph: FunctionGraph, given: Sequence[Any]) -> set[type[Exception]]:
    """Return the classes of the exceptions of nodes whose inputs can be computed.

    The backend determines which of them fails first.
    """
    values = dict(zip(fgraph.inputs, given, strict=True))
    raised: set[type[Exception]] = set()
    for node in fgraph.toposort():
        if all(isinstance(one, Constant) or one in values for one in node.inputs):
            try:
                evaluate_nodes([node], values)
            except Exception as error:
                raised.add(type(error))
    return raised


def _outputs(node: Apply, given: list[Any]) -> list[Any]:
    op = node.op
    if isinstance(op, OpFromGraph):
        return evaluate(op.fgraph, given)
    if type(op).__name__ == "LazyIfElse":
        branch = op.true_branch if given[0] else op.false_branch
        return evaluate(branch.fgraph, given[1:])
    if type(op).__name__ == "IfElse":
        n = op.n_outs
        if given[0] and op.as_view:
            return given[1 : n + 1]
        # A later node may overwrite it. PyTensor's destroy handler only knows about views of the
        # first branch.
        return [np.array(one) for one in (given[1 : n + 1] if given[0] else given[n + 1 :])]
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, Composite):
        op._check_runtime_broadcast(node, given)
        outs = _kernel(op.scalar_op, node, given)
        for out, place in op.inplace_pattern.items():
            given[place][...] = outs[out]
            outs[out] = given[place]
        return outs
    if isinstance(op, ScalarOp):
        outs = _kernel(op, node, given)
        return [out[()] for out in outs]
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, IntDiv | Reciprocal):
        op._check_runtime_broadcast(node, given)
        outs = _elementwise(op, node, given)
        for place in op.inplace_pattern.values():
            given[place][...] = outs[0]
            outs = [given[place]]
        return outs
    if type(op).__name__ == "AdvancedIncSubtensor" and len(given) == 3:
        given = [given[0], _stretched(*given), given[2]]
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    op.perform(node, given, storage)
    if isinstance(op, Alloc):
        # PyTensor replaces -0.0 by 0.0, except where it compiles.
        storage[0][0][...] = given[0]
    return [cell[0] for cell in storage]


def _stretched(x: Any, y: Any, index: Any) -> Any:
    """Return increments as large as an index of two or more dimensions.

    For smaller increments, NumPy's ``add.at`` of a vector reads out of bounds (seen in 2.5.5).
    """
    index = np.asarray(index)
    if np.ndim(x) != 1 or index.dtype == bool or np.ndim(y) >= index.ndim:
        return y
    try:
        return np.broadcast_to(y, index.shape)
    except ValueError:  # The op itself raises the error for shapes that do not fit.
        return y


def _kernel(op: Any, node: Apply, given: list[Any]) -> list[np.ndarray]:
    """Return the outputs of a scalar op on arrays; for a kernel, of each op in it on arrays."""
    if not isinstance(op, Composite):
        return _elementwise(Elemwise(op), node, given)
    shape = np.broadcast_shapes(*(np.shape(one) for one in given))
    values: Values = {
        one: np.asarray(value, dtype=one.type.dtype)
        for one, value in zip(op.fgraph.inputs, given, strict=True)
    }
    for inner in op.fgraph.toposort():
        args = [np.asarray(value_of(one, values)) for one in inner.inputs]
        args = [one.reshape((1,) * (len(shape) - one.ndim) + one.shape) for one in args]
        values.update(zip(inner.outputs, _kernel(inner.op, inner, args), strict=True))
    return [
        np.array(np.broadcast_to(value_of(one, values), shape), dtype=one.type.dtype)
        for one in op.fgraph.outputs
    ]


def _elementwise(op: Elemwise, node: Apply, given: list[Any]) -> list[np.ndarray]:
    arrays = [np.asarray(one) for one in given]
    dtype = np.dtype(node.outputs[0].type.dtype)
    if isinstance(op.scalar_op, IntDiv) and dtype.kind == "f":
        # As compilers divide; NumPy gives 9 for 1.0 // 0.1.
        one, other = (array.astype(dtype) for array in arrays)
        return [np.floor(one / other)]
    if isinstance(op.scalar_op, Add | Mul) and len(arrays) > 2:
        # As compilers do; NumPy's first product of two has their dtype.
        arrays = [array.astype(dtype) for array in arrays]
    if isinstance(op.scalar_op, Reciprocal):
        # NumPy's function returns integers for integers.
        given_dtype = arrays[0].dtype
        wide = given_dtype if given_dtype.kind == "f" else np.dtype("float64")
        return [(1 / arrays[0].astype(wide)).astype(dtype)]
    inputs = [
        TensorType(one.type.dtype, tuple(1 if n == 1 else None for n in array.shape))()
        for one, array in zip(node.inputs, arrays, strict=True)
    ]
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    op.perform(op.make_node(*inputs), arrays, storage)
    return [
        np.asarray(cell[0], dtype=out.type.dtype)
        for cell, out in zip(storage, node.outputs, strict=True)
    ]
