"""Producer of streams that are the product of a matrix and a vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.blas import Gemv

from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.producers.producer import Producer, is_too_small

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._joins.plans import Compilation
    from pytensor_fuse._joins.producers.producer import Placed


class ProductProducer(Producer):
    """Lets PyTensor's BLAS op write the product in place, since it does not read the memory."""

    @staticmethod
    def produces(node: Apply[Any]) -> bool:
        """Return whether ``node`` is a Gemv that computes only the product, into new memory."""
        if not isinstance(node.op, Gemv) or node.op.inplace:
            return False
        memory, *_, scale = node.inputs
        return (
            memory.owner is not None
            and isinstance(memory.owner.op, AllocEmpty)
            and isinstance(scale, Constant)
            and not np.any(scale.data)
        )

    @staticmethod
    def refusal(
        compilation: Compilation, variable: Variable[Any, Any], dtype: str
    ) -> JoinReason | None:
        """Return why the op cannot write the stream, or None; BLAS does not cast."""
        if variable.type.dtype != dtype:
            return JoinReason.NO_KERNEL
        return JoinReason.SMALL if is_too_small(compilation, variable) else None

    def writing(self, kernel: Apply[Any], streams: Sequence[Placed]) -> Apply[Any]:
        """Return the same op on the part."""
        [(_, part)] = streams
        in_place: Any = type(kernel.op)(inplace=True)
        product: Apply[Any] = in_place.make_node(part, *kernel.inputs[1:])
        return product
