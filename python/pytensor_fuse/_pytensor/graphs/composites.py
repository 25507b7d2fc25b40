"""Building the Elemwise of a Composite from scalar nodes, without freezing its graph again."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import FrozenApply, NominalVariable
from pytensor.scalar.basic import Composite, get_scalar_type, identity
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._pytensor.compat import versions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable

    from pytensor_fuse._pytensor.ops.scalar_kinds import ScalarKind


def build_kernel(
    input_dtypes: Sequence[str],
    steps: Sequence[tuple[ScalarKind, Sequence[tuple[bool, int]]]],
    outputs: Sequence[int],
) -> Elemwise:
    """Build the Elemwise op of a kernel.

    Parameters
    ----------
    input_dtypes
        Dtype of each input.
    steps
        The scalar nodes in topological order: each has its scalar op and, for each operand, whether
        it is an earlier step, and the index of that step or of the input.
    outputs
        The steps whose results are outputs of the kernel.
    """
    inputs = tuple([_nominal(i, dtype) for i, dtype in enumerate(input_dtypes)])
    nodes: list[FrozenApply] = []
    for kind, operands in steps:
        scalars = tuple(nodes[i].outputs[0] if is_step else inputs[i] for is_step, i in operands)
        types = tuple(out.type for out in kind.node.outputs)
        nodes.append(FrozenApply(kind.node.op, scalars, types))
    return Elemwise(_composite(inputs, nodes, [nodes[i].outputs[0] for i in outputs]))


def _composite(
    inputs: tuple[Variable[Any, Any], ...],
    nodes: Sequence[FrozenApply],
    outputs: Sequence[Variable[Any, Any]],
) -> Composite:
    """Make the Composite of a frozen graph.

    The constructor would freeze the graph again, node by node; like a Composite that is unpickled,
    this one is made from its parts.
    """
    # Equal steps are one frozen node.
    fgraph = versions.frozen_graph(inputs, tuple(dict.fromkeys(nodes)), outputs)
    composite = Composite.__new__(Composite)
    composite.__setstate__(
        _template().__getstate__()
        | {
            "fgraph": fgraph,
            "inputs": fgraph.inputs,
            "outputs": fgraph.outputs,
            "inputs_type": tuple(variable.type for variable in fgraph.inputs),
            "outputs_type": tuple(variable.type for variable in fgraph.outputs),
            "nin": len(fgraph.inputs),
            "nout": len(fgraph.outputs),
        }
    )
    return composite


@cache
def _nominal(index: int, dtype: str) -> NominalVariable[Any, Any]:
    """Return the scalar that stands for an input; PyTensor keeps it forever, so we may cache it."""
    return NominalVariable(index, get_scalar_type(dtype))


@cache
def _template() -> Composite:
    x = get_scalar_type("float64").make_variable()
    return Composite([x], [identity(x)])
