"""Kinds of ops, by their classes and the modules that define them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.compile.ops import FromFunctionOp
from pytensor.tensor.basic import ScalarFromTensor, TensorFromScalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, Elemwise

from pytensor_fuse._audit.sections.ops.record import OpKind
from pytensor_fuse._pytensor.ops.fused_elemwise import is_fused_elemwise

if TYPE_CHECKING:
    from pytensor.graph.op import Op

# The kind by the module that defines an op; the first match counts.
_MODULES = (
    ("pytensor_fuse.", OpKind.WRITING),
    ("pytensor.scan.", OpKind.INNER_GRAPH),
    ("pytensor.ifelse", OpKind.INNER_GRAPH),
    ("pytensor.conditional.", OpKind.INNER_GRAPH),
    ("pytensor.compile.builders", OpKind.INNER_GRAPH),
    ("pytensor.scalar.", OpKind.SCALAR),
    ("pytensor.sparse.", OpKind.SPARSE),
    ("pytensor.tensor.random.", OpKind.RANDOM),
    *(
        (f"pytensor.tensor.{name}", OpKind.MATRIX)
        for name in ("linalg", "blas", "slinalg", "nlinalg", "_linalg")
    ),
    ("pytensor.tensor.subtensor", OpKind.INDEXING),
    ("pytensor.tensor.basic", OpKind.MAKING),
    ("pytensor.tensor.shape", OpKind.SHAPE),
    ("pytensor.tensor.reshape", OpKind.SHAPE),
    ("pytensor.", OpKind.OTHER),
)

# Base classes that say nothing about a third-party op.
_BASES = ("pytensor.graph.", "pytensor.link.")


def kind_of(op: Op) -> OpKind:
    """Return the kind of an op; a Blockwise has the kind of its core op."""
    if isinstance(op, Blockwise):
        return kind_of(op.core_op)
    if isinstance(op, Elemwise) or is_fused_elemwise(op):
        return OpKind.KERNEL
    if isinstance(op, CAReduce):
        return OpKind.REDUCTION
    if isinstance(op, FromFunctionOp):
        return OpKind.UNKNOWN
    if isinstance(op, ScalarFromTensor | TensorFromScalar):
        return OpKind.SCALAR
    if type(op).__name__ == "Dot":
        return OpKind.MATRIX
    for base in type(op).__mro__:
        if base.__module__.startswith(_BASES):
            return OpKind.UNKNOWN
        for prefix, kind in _MODULES:
            if f"{base.__module__}.".startswith(prefix):
                of_views = kind in (OpKind.OTHER, OpKind.MAKING) and bool(op.view_map)
                return OpKind.SHAPE if of_views else kind
    return OpKind.UNKNOWN
