"""Copies of arrays, random generators and sparse matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.compile.ops import DeepCopyOp
from pytensor.tensor.random.type import RandomGeneratorType

from pytensor_fuse._native.lowering.parts import copy_of_argument
from pytensor_fuse._native.lowering.registry import dtype_refusal, lower
from pytensor_fuse._native.lowering.sparse.matrices import SparseMatrix

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Node, Tensors


def _refuses_copy(op: Any, node: Node) -> str | None:
    is_generator = isinstance(node.inputs[0].type, RandomGeneratorType)
    return None if is_generator else dtype_refusal(node)


@lower.register(DeepCopyOp, refuses=_refuses_copy)
def _deep_copy(op: DeepCopyOp, node: Node, context: Context, inputs: Tensors) -> Tensors:
    [given] = inputs
    if isinstance(given, SparseMatrix):
        return [given.copied(context)]
    if given.parts:
        return [copy_of_argument(context, given, node.inputs[0].type)]
    return [context.materialized(given.dtype, given.lengths, given.at)]
