"""What a graph computes, by the ops' Python code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.link.basic import PerformLinker
from pytensor.scalar.basic import Add, Composite, Mul, ScalarOp
from pytensor.tensor.elemwise import Elemwise


def evaluate(fgraph: FunctionGraph, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of the graph by the ops' Python code, with every kernel taken apart again.

    NumPy's universal functions stop at 32 operands, which kernels of the larger graphs exceed.
    """
    plain = FunctionGraph(fgraph.inputs, _without_composites(fgraph), clone=False)
    run, inputs, outputs = PerformLinker().accept(plain).make_thunk()
    for container, value in zip(inputs, values, strict=True):
        container.storage[0] = value
    run()
    return [np.asarray(container.storage[0]) for container in outputs]


def _without_composites(fgraph: FunctionGraph) -> list[Variable]:
    """The outputs of the graph with kernels replaced by one or more Elemwise per scalar op."""
    new: dict[Variable, Variable] = {}
    for node in fgraph.toposort():
        inputs = [new.get(inp, inp) for inp in node.inputs]
        if isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Composite):
            outputs = _inlined(node.op.scalar_op, inputs)
        elif isinstance(node.op, Elemwise):
            outputs = _elemwise(node.op.scalar_op, inputs)
        else:
            outputs = node.clone_with_new_inputs(inputs, strict=False).outputs
        new.update(zip(node.outputs, outputs, strict=True))
    return [new.get(out, out) for out in fgraph.outputs]


def _inlined(composite: Composite, inputs: Sequence[Variable]) -> list[Variable]:
    new = dict(zip(composite.fgraph.inputs, inputs, strict=True))

    def lifted(variable: Variable) -> Variable:
        return pt.constant(variable.data) if isinstance(variable, Constant) else new[variable]

    for node in composite.fgraph.toposort():
        outputs = _elemwise(node.op, [lifted(inp) for inp in node.inputs])
        new.update(zip(node.outputs, outputs, strict=True))
    return [lifted(out) for out in composite.fgraph.outputs]


def _elemwise(op: ScalarOp, inputs: Sequence[Variable]) -> list[Variable]:
    if isinstance(op, Add | Mul):
        return [reduce(Elemwise(op), inputs)]
    return Elemwise(op)(*inputs, return_list=True)
