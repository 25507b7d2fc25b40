"""The pass that makes products and sums of matrices one call of BLAS, where there is no product."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.scalar.basic import Add, Mul, Neg, Sub
from pytensor.tensor.blas import Dot22
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.rewriting import blas
from pytensor.tensor.rewriting.blas import GemmOptimizer

from pytensor_fuse._pytensor.patching.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch

_stock_apply: Any = GemmOptimizer.apply
_stock_from_node: Any = blas._gemm_from_node2

# Through these it looks for terms.
_SUMS = (Add, Sub, Neg, Mul)


def apply(self: Any, fgraph: Any) -> Any:
    """Do as `GemmOptimizer.apply`, which looks for a sum with a term that a `Dot22` computes.

    Without one it takes each sum of the graph apart, makes constants for the factors of its terms,
    and finds nothing.
    """
    if fgraph.profile:
        return _stock_apply(self, fgraph)
    for node in fgraph.apply_nodes:
        if isinstance(node.op, Dot22):
            return _stock_apply(self, fgraph)
    return self, 1, 0, 0, 0, 0, 0, 0, 0, 0.0, None, None, {}


def from_node(fgraph: Any, node: Any) -> Any:
    """Do as `_gemm_from_node2`, which is asked only where a term may be a product of matrices."""
    if _has_product(fgraph, node):
        return _stock_from_node(fgraph, node)
    return None, 0.0, 0, 0


def _has_product(fgraph: Any, node: Any) -> bool:
    """Whether a ``Dot22``, or a `DimShuffle` of one, is a term of what a node computes.

    Those that are passed through on the way have one reader, as `_gemm_canonicalize` has it.
    """
    clients = fgraph.clients
    pending = list(node.inputs)
    while pending:
        v = pending.pop()
        owner = v.owner
        if owner is None:
            continue
        op = owner.op
        if isinstance(op, DimShuffle):
            # One that the sum reads, or within a scalar factor.
            pending.append(owner.inputs[0])
        elif isinstance(op, Dot22):
            return True
        elif (
            isinstance(op, Elemwise)
            and isinstance(op.scalar_op, _SUMS)
            and len(clients.get(v, ())) <= 1
        ):
            pending += owner.inputs
    return False


def patch() -> Patch:
    """Return the patch."""
    return Together(
        DropIn(GemmOptimizer, "apply", apply), DropIn(blas, "_gemm_from_node2", from_node)
    )
