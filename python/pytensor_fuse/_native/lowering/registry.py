"""The rules, one per kind of op, registered as PyTensor's back-ends register theirs.

>>> import pytensor.tensor as pt
>>> from pytensor_fuse._native.lowering.registry import lower
>>> lower.has_rule(pt.sort(pt.vector()).owner.op)
False

A rule takes the op, its apply node, the `Context` to write with, and a `Tensor` for each input; it
returns a `Tensor` for each output.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.basic import Apply

    from pytensor_fuse._native.lowering.context import Context
    from pytensor_fuse._native.lowering.tensors import Tensor

    Rule = Callable[[Any, Apply[Any], Context, list[Tensor]], Sequence[Tensor]]
    Refusal = Callable[[Any, Apply[Any]], str | None]

_Rule = TypeVar("_Rule", bound="Rule")


class NoRuleError(Exception):
    """A node cannot be lowered; the message says why.

    A rule raises it where that is known only while it writes; Numba then compiles the graph.

    Attributes
    ----------
    node
        The node, if it is known.
    """

    node: Apply[Any] | None = None


class Lowering:
    """The rules by class of op, and which nodes they refuse."""

    def __init__(self) -> None:
        self._rules: Any = singledispatch(_no_rule)
        self._refusals: Any = singledispatch(_refuses_nothing)

    def register(self, *ops: type, refuses: Refusal | None = None) -> Callable[[_Rule], _Rule]:
        """Return a decorator that registers a rule for classes of ops.

        Parameters
        ----------
        *ops
            The classes; a rule holds for their subclasses as well, unless these have their own.
        refuses
            Says why a node of the op cannot be lowered, or None if it can; it changes nothing.
        """

        def registered(rule: _Rule) -> _Rule:
            for op in ops:
                self._rules.register(op)(rule)
                self._refusals.register(op)(refuses or _refuses_nothing)
            return rule

        return registered

    def has_rule(self, op: Any) -> bool:
        """Whether there is a rule for an op."""
        return self._rules.dispatch(type(op)) is not _no_rule

    def refusal(self, node: Apply[Any]) -> str | None:
        """Return why a node cannot be lowered by the rule for its op, or None."""
        if not self.has_rule(node.op):
            return f"no rule for {type(node.op).__name__}"
        why: str | None = self._refusals(node.op, node)
        return why

    def __call__(
        self, op: Any, node: Apply[Any], context: Context, inputs: list[Tensor]
    ) -> Sequence[Tensor]:
        """Lower a node."""
        outputs: Sequence[Tensor] = self._rules(op, node, context, inputs)
        return outputs


def _no_rule(op: Any, node: Apply[Any], context: Context, inputs: list[Tensor]) -> Sequence[Tensor]:
    raise NoRuleError(f"no rule for {type(op).__name__}")


def _refuses_nothing(op: Any, node: Apply[Any]) -> str | None:
    return None


lower = Lowering()
