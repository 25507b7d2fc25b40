"""Cost model: whether a graph runs in Python in less time than Numba takes to compile it.

Costs are integers, about microseconds on today's machines: decisions must not depend on a clock.
Nodes that have rules are in regions of machine code in either case, so the model covers the Python
code between these.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pytensor.compile.builders import OpFromGraph
from pytensor.graph.op import HasInnerGraph
from pytensor.scalar.basic import Composite, ScalarOp
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.random.op import RandomVariable

from pytensor_fuse._pytensor.linking.optimizers import is_optimizer
from pytensor_fuse._pytensor.linking.python_nodes import has_python_code, same_draws

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor_fuse._native.lowering.types import Node


# Numba compiles the smallest graph in half a second, and most in several seconds.
COMPILE: Final = 500_000
# The costs of a call of a function of regions, a region, an op, and an op by NumPy's `vectorize`.
_CALL: Final = 50
_REGION: Final = 5
_NODE: Final = 20
_STEP: Final = 50
# Python would call optimizers under Numba, too.
_OPTIMIZER: Final = 100
# NumPy's limit.
_MOST_OPERANDS: Final = 32


def why_not_python(nodes: Iterable[Node]) -> str | None:
    """Return the reason why nodes cannot run in Python instead of Numba, or None if they can.

    Parameters
    ----------
    nodes
        The nodes outside of the regions of machine code.
    """
    for node in nodes:
        why = _refusal(node)
        if why is not None:
            return f"{node.op}: {why}"
    return None


def run_cost(nodes: Iterable[Node], n_regions: int) -> int:
    """Return the cost of a run.

    Parameters
    ----------
    nodes
        The nodes outside of the regions of machine code, none of which is refused.
    n_regions
        The number of regions.
    """
    return _CALL + _REGION * n_regions + sum(_cost(node) for node in nodes)


def _refusal(node: Node) -> str | None:
    op = node.op
    for variable in (*node.inputs, *node.outputs):
        if getattr(variable.type, "dtype", None) == "float16":
            return "float16, which Numba does not have"
    if isinstance(op, OpFromGraph):
        inner = op.fgraph.toposort()
        if len(inner) > 1 and any(one.op.destroy_map for one in inner):
            return "its inner graph overwrites its inputs"
        return why_not_python(inner)
    core = op.core_op if isinstance(op, Blockwise) else op
    runs_graph = isinstance(core, HasInnerGraph) and not isinstance(core, ScalarOp)
    if runs_graph and not is_optimizer(op):
        return "it runs a function of its own"
    if not (has_python_code(op) and has_python_code(core)):
        return "it has no Python code"
    if isinstance(op, RandomVariable) and not same_draws(node):
        return "Numba draws other numbers than NumPy"
    if isinstance(op, Elemwise | CAReduce):
        is_slow = isinstance(op.scalar_op, Composite) or not getattr(
            op.scalar_op, "nfunc_spec", None
        )
        if is_slow or len(node.inputs) + len(node.outputs) > _MOST_OPERANDS:
            return "a loop over elements in Python"
    if isinstance(op, Blockwise) and _n_blocks(node) is None:
        return "a loop in Python whose length is not known"
    return None


def _cost(node: Node) -> int:
    op = node.op
    if isinstance(op, OpFromGraph):
        return sum(_cost(one) for one in op.fgraph.toposort())
    if isinstance(op, Blockwise):
        return _NODE + _STEP * (_n_blocks(node) or 0)
    if is_optimizer(op):
        return _OPTIMIZER
    return _STEP if isinstance(op, RandomVariable) else _NODE


def _n_blocks(node: Node) -> int | None:
    """Return the number of calls that a node over blocks makes of its op; None if unknown."""
    lengths = node.outputs[0].type.shape[: node.op.batch_ndim(node)]
    return None if None in lengths else math.prod(lengths)
