"""Variables of a graph with rounding errors of single precision, whatever their dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pytensor.scalar.basic import TrueDiv
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._pytensor.graphs.inner_graphs import own_graphs

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Node, Nodes, Variable


def of_single_precision(nodes: Nodes) -> set[Variable]:
    """Return the floats that depend on a computation in single precision.

    Parameters
    ----------
    nodes
        The nodes of a graph in an executable order.
    """
    found: set[Variable] = set()
    for node in nodes:
        if not found.isdisjoint(node.inputs) or _is_single(node):
            found.update(one for one in node.outputs if _kind(one) == "f")
    return found


def _is_single(node: Node) -> bool:
    """Whether a node, or one of its inner graphs, computes in single precision."""
    if any(_kind(one) == "f" and one.type.dtype == "float32" for one in node.outputs):
        return True
    op = node.op.scalar_op if isinstance(node.op, Elemwise) else node.op
    if isinstance(op, TrueDiv):
        # Numba divides integers in the least precise float type that represents them exactly.
        return all(np.dtype(one.type.dtype).itemsize <= 2 for one in node.inputs)
    return any(_is_single(inner) for graph in own_graphs(op) for inner in graph.apply_nodes)


def _kind(variable: Variable) -> str | None:
    dtype = getattr(variable.type, "dtype", None)
    return None if dtype is None else np.dtype(dtype).kind
