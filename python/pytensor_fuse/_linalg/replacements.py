"""Replacements that rules return, checked and completed in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.rewriting.basic import copy_stack_trace

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply


def completed(node: Apply[Any], found: Any) -> dict[Any, Any] | None:
    """Return replacements by variable, with the dtypes and stack traces of the old variables.

    Parameters
    ----------
    node
        The node that a rule was tried on.
    found
        The rule's result: a list with the replacement of the node's only output, replacements by
        variable, or nothing.

    Returns
    -------
    dict, or None
        None if a replacement has another number of axes or is less precise than the old variable.
    """
    if not found:
        return None
    replacements = found if isinstance(found, dict) else {node.outputs[0]: found[0]}
    result = {}
    for old, new in replacements.items():
        if new.type.ndim != old.type.ndim:
            return None
        if new.type.dtype != old.type.dtype:
            is_wider = np.promote_types(old.type.dtype, new.type.dtype) == new.type.dtype
            if not (is_wider and np.can_cast(new.type.dtype, old.type.dtype, "same_kind")):
                return None
            new = new.astype(old.type.dtype)
        copy_stack_trace(old, new)
        result[old] = new
    return result
