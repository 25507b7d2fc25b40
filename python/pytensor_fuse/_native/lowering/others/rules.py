"""Calls of third-party rules: checked arguments and results, and faults attributed to the rule.

The elements of a rule's tensors are computed when other rules read them. A fault that shows only
then is still attributed to the rule that contains it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.lowering.others.checking import checking
from pytensor_fuse._native.lowering.others.requirements import require_element, require_index
from pytensor_fuse._native.lowering.registry import NoRuleError, RuleError, lower
from pytensor_fuse._native.lowering.tensors import NOTHING, Tensor
from pytensor_fuse._native.lowering.values import OwningBuilder
from pytensor_fuse._native.program.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Context, Index, Node, Program, Tensors, Value


def fault(node: Node, error: Exception) -> RuleError:
    """Return an error that attributes an exception to the rule for a node."""
    found = RuleError(f"{_told(node)} has a fault: {type(error).__name__}: {error}")
    found.node = node
    return found


def _told(node: Node) -> str:
    return f"the rule {lower.rule_name(node.op)} for {type(node.op).__name__}, of the node {node},"


def lowered_by_others(node: Node, context: Context, inputs: Tensors) -> Tensors:
    """Lower a node by a third-party rule."""
    context.others.append(_told(node))
    checked = checking(context)
    builder = checked.builder
    assert isinstance(builder, OwningBuilder)
    outs = lower(node.op, node, checked, [_given(builder, one) for one in inputs])
    if not isinstance(outs, list | tuple) or not all(isinstance(one, Tensor) for one in outs):
        raise TypeError(f"it returns {outs!r} instead of a list of tensors")
    return [_returned(node, builder, one) for one in outs]


def _given(builder: OwningBuilder, tensor: Tensor) -> Tensor:
    if tensor is NOTHING or tensor.parts:
        return tensor

    def at(index: Index) -> Value:
        require_index(builder, index, tensor.ndim)
        return tensor.at(index)

    return Tensor(tensor.dtype, tensor.lengths, at, tensor.buffer, tensor.data, tensor.layout)


def _returned(node: Node, builder: OwningBuilder, tensor: Tensor) -> Tensor:
    if tensor is NOTHING or tensor.parts:
        return tensor
    for length in tensor.lengths:
        require_element(builder, length, "i64", "a length")

    def at(index: Index) -> Value:
        try:
            element = tensor.at(index)
            require_element(builder, element, tensor.dtype)
        except (NoRuleError, RuleError) as error:
            # An error from a rule whose elements this one reads has its node already.
            error.node = error.node or node
            raise
        except Exception as error:
            raise fault(node, error) from error
        return element

    return Tensor(tensor.dtype, tensor.lengths, at, tensor.buffer, tensor.data, tensor.layout)


def verify_with_others(program: Program, others: Sequence[str]) -> None:
    """Verify a program to which third-party rules have contributed.

    Raises
    ------
    RuleError
        If the program is invalid.
    """
    from pytensor_fuse._native.program.verify import verify

    try:
        verify(program)
    except ProgramError as error:
        names = "\n".join(f"  {one}" for one in dict.fromkeys(others))
        raise RuleError(f"invalid program: {error}. It was emitted by\n{names}") from error
