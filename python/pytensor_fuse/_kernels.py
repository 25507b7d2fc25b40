"""One Composite per kernel structure, shared by every graph of the process."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from functools import cache
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import FrozenApply, NominalVariable
from pytensor.scalar.basic import Composite, get_scalar_type, identity
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse import _compat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable

    from pytensor_fuse._core import Term
    from pytensor_fuse._targets import ScalarKind

# Kernels are kept for later graphs; the least recently used go when their scalar nodes together
# are more than this, some 100 MB.
_MAX_SCALAR_NODES = 100_000


class KernelCache:
    """Elemwise ops of fused kernels by their terms in the hash-cons table.

    The least recently used are forgotten, and their terms with them.
    """

    def __init__(self, max_scalar_nodes: int = _MAX_SCALAR_NODES) -> None:
        self._max_scalar_nodes = max_scalar_nodes
        self._n_scalar_nodes = 0
        self._ops: OrderedDict[Term, Elemwise] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, structure: Term) -> Elemwise | None:
        """Return the op of the kernel with this structure, if it is known."""
        with self.lock:
            op = self._ops.get(structure)
            if op is not None:
                self._ops.move_to_end(structure)
            return op

    def add(self, structure: Term, op: Elemwise) -> Elemwise:
        """Remember ``op``, unless another thread was faster; return the one to use."""
        with self.lock:
            known = self._ops.setdefault(structure, op)
            if known is op:
                self._n_scalar_nodes += len(op.scalar_op.fgraph.apply_nodes)
            while self._n_scalar_nodes > self._max_scalar_nodes and len(self._ops) > 1:
                _, oldest = self._ops.popitem(last=False)
                self._n_scalar_nodes -= len(oldest.scalar_op.fgraph.apply_nodes)
            return known


kernel_cache = KernelCache()

if hasattr(os, "register_at_fork"):
    # A child must not inherit the lock from a thread that it does not have.
    os.register_at_fork(
        before=kernel_cache.lock.acquire,
        after_in_parent=kernel_cache.lock.release,
        after_in_child=kernel_cache.lock.release,
    )


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
        The scalar nodes, each after those it reads: what it computes and, for each operand,
        whether it is an earlier step and which, or which input.
    outputs
        The steps whose results leave the kernel.
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

    Its constructor would freeze the graph again, node by node; a Composite that is unpickled is
    made from its parts, and so is this one.
    """
    # Equal steps are one frozen node.
    fgraph = _compat.frozen_graph(inputs, tuple(dict.fromkeys(nodes)), outputs)
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
    """Return the scalar that stands for an input; PyTensor keeps it for good, and so may we."""
    return NominalVariable(index, get_scalar_type(dtype))


@cache
def _template() -> Composite:
    x = get_scalar_type("float64").make_variable()
    return Composite([x], [identity(x)])
