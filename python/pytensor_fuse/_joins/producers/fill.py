"""Producer of streams that an Alloc fills with one number, without a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pytensor.tensor.basic import Alloc

from pytensor_fuse._joins.ops.fill import WriteFill
from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.producers.producer import Producer, casts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._joins.plans import Compilation
    from pytensor_fuse._joins.producers.producer import Placed


class FillProducer(Producer):
    """Replaces an Alloc of one number by a `WriteFill`."""

    @staticmethod
    def produces(node: Apply[Any]) -> bool:
        """Return whether ``node`` is an Alloc."""
        return isinstance(node.op, Alloc)

    @staticmethod
    def refusal(
        compilation: Compilation, variable: Variable[Any, Any], dtype: str
    ) -> JoinReason | None:
        """Return why the stream cannot be filled, or None; a fill is never too small."""
        if not all(n == 1 for n in variable.owner.inputs[0].type.shape):
            return JoinReason.NO_KERNEL
        return None if casts(variable.type.dtype, dtype) else JoinReason.DTYPE

    def writing(self, kernel: Apply[Any], streams: Sequence[Placed]) -> Apply[Any]:
        """Return the node that fills the part."""
        [(_, part)] = streams
        number = cast("Any", kernel.inputs[0]).dimshuffle([])
        return WriteFill().make_node(number, part)
