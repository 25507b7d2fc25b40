"""Replacements that rules return: of the type that PyTensor expects, with the old stack traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.rewriting.basic import copy_stack_trace

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply


def checked(replacements: dict[Any, Any]) -> dict[Any, Any] | None:
    """Return replacements of variables; None if a dtype or a number of axes differs."""
    for before, after in replacements.items():
        if after.type.dtype != before.type.dtype or after.type.ndim != before.type.ndim:
            return None
        copy_stack_trace(before, after)
    return replacements


def replaced(node: Apply[Any], new: Any) -> list[Any] | None:
    """Return the replacement of a node's only output; None if its dtype or axes differ."""
    [old] = node.outputs
    return None if checked({old: new}) is None else [new]


def replaced_and_cast(node: Apply[Any], new: Any) -> list[Any]:
    """Return the replacement of a node's only output, cast to its dtype."""
    [old] = node.outputs
    if new.type.dtype != old.type.dtype:
        new = new.astype(old.type.dtype)
    copy_stack_trace(old, new)
    return [new]
