"""Producer of streams that an Elemwise computes, one or several at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pytensor.scalar.basic import Composite, get_scalar_type
from pytensor.scalar.basic import add as scalar_add
from pytensor.scalar.basic import cast as scalar_cast
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._joins.ops.elemwise import WriteElemwise
from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.producers.producer import Producer, casts, is_too_small
from pytensor_fuse._pytensor.ops.scalar_kinds import scalar_kinds
from pytensor_fuse._pytensor.ops.targets import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FrozenFunctionGraph

    from pytensor_fuse._joins.plans import Compilation
    from pytensor_fuse._joins.producers.producer import Placed


class ElemwiseProducer(Producer):
    """Gives an Elemwise the parts as inputs that it does not read; equal kernels share one op."""

    def __init__(self) -> None:
        self._ops: dict[Any, WriteElemwise] = {}

    @staticmethod
    def produces(node: Apply[Any]) -> bool:
        """Return whether ``node`` is an Elemwise."""
        return isinstance(node.op, Elemwise)

    @staticmethod
    def refusal(
        compilation: Compilation, variable: Variable[Any, Any], dtype: str
    ) -> JoinReason | None:
        """Return why the kernel cannot write the stream, or does not gain; None if it can."""
        kernel, target = variable.owner, compilation.target
        if is_too_small(compilation, variable):
            return JoinReason.SMALL
        if kernel.outputs.index(variable) in kernel.op.inplace_pattern:
            return JoinReason.IN_PLACE
        if not _compiles(kernel, target):
            return JoinReason.NOT_COMPILED
        # Inside a kernel, Python computes with its own numbers, unlike NumPy's function for an op.
        if variable.type.dtype != dtype and (
            target is Target.PYTHON or not casts(variable.type.dtype, dtype)
        ):
            return JoinReason.DTYPE
        return None

    def writing(self, kernel: Apply[Any], streams: Sequence[Placed]) -> Apply[Any]:
        """Return the kernel with the added pieces and the overwritten parts as further inputs."""
        operands = list(kernel.inputs)
        for stream, part in streams:
            operands += [part] if stream.added is None else [stream.added, part]
        written = tuple(
            (stream.output, None if stream.added is None else stream.added.type.dtype)
            for stream, _ in streams
        )
        # The key holds everything that `_writing_op` reads.
        key = (kernel.op, written, tuple(operand.type.dtype for operand in operands))
        if key not in self._ops:
            self._ops[key] = _writing_op(kernel, streams)
        node: Apply[Any] = cast("Any", self._ops[key]).make_node(*operands)
        return node


def _writing_op(kernel: Apply[Any], streams: Sequence[Placed]) -> WriteElemwise:
    scalar_op = kernel.op.scalar_op
    if isinstance(scalar_op, Composite):
        inner = cast("FrozenFunctionGraph", scalar_op.fgraph).unfreeze()
        inputs, outputs = list(inner.inputs), list(inner.outputs)
    else:
        inputs = [get_scalar_type(v.type.dtype).make_variable() for v in kernel.inputs]
        outputs = list(scalar_op.make_node(*inputs).outputs)
    pattern = dict(kernel.op.inplace_pattern)
    for stream, part in streams:
        computed = outputs[stream.output]
        if stream.added is not None:
            inputs.append(get_scalar_type(stream.added.type.dtype).make_variable())
            computed = cast("Any", scalar_add)(inputs[-1], computed)
        if computed.type.dtype != part.type.dtype:
            computed = scalar_cast(computed, part.type.dtype)
        outputs[stream.output] = computed
        pattern[stream.output] = len(inputs)
        inputs.append(get_scalar_type(part.type.dtype).make_variable())
    make: Any = WriteElemwise
    op: WriteElemwise = make(Composite(inputs, outputs), pattern, openmp=kernel.op.openmp)
    return op


def _compiles(kernel: Apply[Any], target: Target) -> bool:
    if isinstance(kernel.op.scalar_op, Composite):
        return not (target is not Target.NUMBA and _has_float16(kernel))
    if _has_float16(kernel):
        return False
    if target is Target.PYTHON:
        return True
    [scalar_kind] = scalar_kinds([kernel])
    return scalar_kind is not None and scalar_kind.compiles(target)


def _has_float16(kernel: Apply[Any]) -> bool:
    return any(v.type.dtype == "float16" for v in (*kernel.inputs, *kernel.outputs))
