"""CheckAndRaise: an exception unless conditions hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.raise_op import CheckAndRaise

from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.scalars.registry import refuses_dtypes
from pytensor_fuse._native.program.failures import literal

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.annotations import Context, Node, Tensors


@lower.register(CheckAndRaise, refuses=refuses_dtypes)
def _check_and_raise(op: CheckAndRaise, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    given, *conditions = inputs
    for condition in conditions:
        builder.check(builder.cast(condition.at(()), "bool"), op.exc_type, literal(op.msg))
    return [given]
