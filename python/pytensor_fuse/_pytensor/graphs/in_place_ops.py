"""Ops that overwrite an input: the in-place form of an op, and the form that overwrites nothing."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op

# Attributes that name the inputs that an op overwrites, and do not affect its results.
_OVERWRITING = (
    "inplace",
    "inplace_pattern",
    "destroyhandler_tolerate_aliased",
    *("overwrite_a", "overwrite_b", "overwrite_c"),
    *("overwrite_d", "overwrite_dl", "overwrite_du"),
)


def in_place_form(node: Apply[Any], output: int, position: int) -> Op | None:
    """Return an op that computes the same as the op of ``node`` and also overwrites an input."""
    op: Any = node.op
    wanted = {**op.destroy_map, output: [position]}
    try:
        form = _form(op, output, position)
    except Exception:  # An op of another package that fails here has no such form.
        return None
    return form if form is not None and form.destroy_map == wanted else None


def _form(op: Any, output: int, position: int) -> Any:
    if isinstance(op, Elemwise):
        make: Any = type(op)
        return make(op.scalar_op, {**op.inplace_pattern, output: position})
    if isinstance(op, Blockwise):
        core = _form(op.core_op, output, position)
        if core is None:
            return None
        make = type(op)
        return make(
            core_op=core,
            signature=op.signature,
            name=op.name,
            gufunc_spec=op.gufunc_spec,
            destroy_map=core.destroy_map,
        )
    form = op.inplace_on_inputs([position])
    if form.destroy_map != op.destroy_map:
        return form
    props = getattr(op, "__props__", ())
    if "inplace" in props and not op.inplace:
        return type(op)(**{name: getattr(op, name) for name in props} | {"inplace": True})
    return None


def without_overwriting(op: Op) -> Op:
    """Return an op that computes the same and overwrites no input, where one is known.

    The result is for comparisons only and must not run.
    """
    if not getattr(op, "destroy_map", None) or "destroy_map" not in vars(op):
        return op
    plain = copy.copy(op)
    plain.destroy_map = {}
    for name in _OVERWRITING:
        if name in vars(plain):
            setattr(plain, name, type(vars(plain)[name])())
    if isinstance(plain, Blockwise):
        plain.core_op = without_overwriting(plain.core_op)
    return plain
