"""Writes by index, in place or to a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pytensor.tensor import subtensor
from pytensor.tensor.subtensor import IncSubtensor

from pytensor_fuse._native.lowering.indexing.reads import reader
from pytensor_fuse._native.lowering.indexing.selection import place_along, selection_of
from pytensor_fuse._native.lowering.registry import dtype_refusal, lower
from pytensor_fuse._native.lowering.tensors import Tensor, scalar, stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.indexing.selection import Selection
    from pytensor_fuse._native.lowering.types import BufferId, Context, Index, Node, Tensors, Value

# PyTensor 3.0 has a separate op for one index vector.
_SCATTERS = tuple(
    getattr(subtensor, name)
    for name in ("AdvancedIncSubtensor", "AdvancedIncSubtensor1")
    if hasattr(subtensor, name)
)

_DOES_NOT_FIT: Final = "operands could not be broadcast together with remapped shapes"
# PyTensor 3.0 leaves the assignment to a slice to Numba, whose message has the shapes.
_NAMES_SHAPES: Final = hasattr(subtensor, "AdvancedIncSubtensor1")
_MOST_DETAILS: Final = 8


def _refuses(op: Any, node: Node) -> str | None:
    why = dtype_refusal(node)
    if why is not None:
        return why
    base, value = node.inputs[:2]
    if value.type.ndim > ndim_selected(op, node):
        return "a value with more axes than its target"
    if not _may_write(op, base.type.dtype, value.type.dtype):
        return f"values of {value.type.dtype} written to {base.type.dtype}"
    return None


def ndim_selected(op: Any, node: Node) -> int:
    """Return the number of axes of an op's selection."""
    base, _, *indices = node.inputs
    ndim: int = base.type.ndim
    arrays: list[Any] = [indices[entry] for entry in op.idx_list if isinstance(entry, int)]
    if isinstance(op, IncSubtensor):
        return ndim - len(arrays)
    masks: list[int] = [one.type.ndim for one in arrays if one.type.dtype == "bool"]
    integers: list[int] = [one.type.ndim for one in arrays if one.type.dtype != "bool"]
    group: int = max([*integers, *[1 for _ in masks]], default=0)
    return ndim - len(integers) - sum(masks) + group


def _may_write(op: Any, base: str, value: str) -> bool:
    """Whether a cast of the value to the dtype of the base commutes with the operation."""
    if op.set_instead_of_inc:
        # PyTensor keeps assignments of floats to integers, and of numbers to bools.
        return base == value or (base != "bool" and (base[0] == "f" or value[0] != "f"))
    common = np.result_type(base, value)
    return common == base or (base != "bool" and common.kind in "iu")


@lower.register(IncSubtensor, *_SCATTERS, refuses=_refuses)
def _write(op: Any, node: Node, context: Context, inputs: Tensors) -> Sequence[Tensor]:
    builder, base = context.builder, inputs[0]
    selection = selection_of(context, node, inputs, 2)
    if not base.lengths:
        value = builder.cast(inputs[1].at(()), base.dtype)
        return [
            scalar(builder, value if op.set_instead_of_inc else _sum(context, base.at(()), value))
        ]
    given = _Value(context, op, inputs[1], node.inputs[1].type.broadcastable, selection)
    into = context.destination(base) if op.inplace else None
    if into is not None:
        given.keep_apart(op, into)
    combiner = "" if op.set_instead_of_inc else "or" if base.dtype == "bool" else "add"
    if combiner and getattr(op, "ignore_duplicates", False) and selection.may_repeat:
        # By NumPy's rules, the last sum with the old element wins.
        given.add_to(base)
        combiner = ""
    if into is None:
        into = context.copied(base, is_once=False)
    given.write(into, combiner)
    return [stored(builder, into)]


def _sum(context: Context, one: Value, other: Value) -> Value:
    builder = context.builder
    return builder.op("or" if builder.dtype(one) == "bool" else "add", one, other)


def _shape(first: int, ndim: int) -> str:
    """Return the text of a shape whose lengths are consecutive details of a check."""
    places = ", ".join([f"{{{first + axis}}}" for axis in range(ndim)])
    return f"({places},)" if ndim == 1 else f"({places})"


class _Value:
    """The value to write to a selection, broadcast where it has one element."""

    def __init__(
        self,
        context: Context,
        op: Any,
        given: Tensor,
        stretches: Sequence[bool],
        selection: Selection,
    ) -> None:
        self._context = context
        self._given = given
        self._selection = selection
        self._skipped = len(selection.lengths) - given.ndim
        self._stretches = tuple(stretches)
        self._failure, self._details = self._misfit(op)
        self._is_in_doubt = [
            self._fits(own, into, is_one=is_one)
            for own, into, is_one in zip(
                given.lengths, selection.lengths[self._skipped :], stretches, strict=True
            )
        ]

    def _misfit(self, op: Any) -> tuple[str, list[Value]]:
        """Return the message for lengths that do not fit, with its details."""
        into = self._selection.lengths
        if not (_NAMES_SHAPES and isinstance(op, IncSubtensor) and op.set_instead_of_inc):
            return _DOES_NOT_FIT, []
        if 2 * len(into) > _MOST_DETAILS:
            return _DOES_NOT_FIT, []
        builder = self._context.builder
        one = builder.index(1)
        stretched = [
            builder.op("select", builder.op("eq", own, one), length, own)
            for own, length in zip(self._given.lengths, into[self._skipped :], strict=True)
        ]
        message = (
            f"cannot assign slice of shape {_shape(0, len(into))} "
            f"from input of shape {_shape(len(into), len(into))}"
        )
        return message, [*into[: self._skipped], *stretched, *into]

    def _fits(self, own: Value, into: Value, *, is_one: bool) -> Value | None:
        """Check the length of an axis.

        Returns
        -------
        Value or None
            Whether the axis has its full length, if that is known only at run time.
        """
        context, builder = self._context, self._context.builder
        one = builder.index(1)
        own, into = context.length(own), context.length(into)
        if is_one or own == into:
            return None
        number = builder.number(own)
        if number == 1:
            return None
        is_same = builder.op("eq", own, into)
        if number is None and builder.number(into) != 1:
            fits = builder.op("or", is_same, builder.op("eq", own, one))
            builder.check(fits, ValueError, self._failure, *self._details)
            return is_same
        if self._details:
            builder.check(is_same, ValueError, self._failure, *self._details)
        else:
            context.require_equal(own, into, ValueError, self._failure)
        return None

    def keep_apart(self, op: Any, into: BufferId) -> None:
        """Copy the value if the base that is overwritten may overlap it."""
        own = self._given.buffer
        may_overlap = bool(getattr(op, "destroyhandler_tolerate_aliased", ()))
        if may_overlap and self._given.ndim and (own is None or own == into):
            self._given = stored(self._context.builder, self._context.copied(self._given))

    def add_to(self, base: Tensor) -> None:
        """Replace the value by its sum with the selected elements of a base."""
        context, selection = self._context, self._selection
        builder = context.builder
        buffer = context.temporary(base.dtype, selection.lengths)
        read = reader(context, base, selection)

        def store_sum(index: Index, place: Index) -> None:
            value = builder.cast(self._at(index, is_exact=False), base.dtype)
            builder.store(buffer, index, _sum(context, read(place), value))

        selection.nest(store_sum)
        self._given = stored(builder, buffer)
        self._skipped = 0
        self._stretches = (False,) * len(selection.lengths)
        self._is_in_doubt = [None] * len(selection.lengths)

    def _at(self, index: Index, *, is_exact: bool) -> Value:
        """Return the value at an index into the selection.

        Parameters
        ----------
        index
            The index.
        is_exact
            Whether axes that may have one element are known to have their full length here.
        """
        own = [
            at
            if is_exact and doubt is not None
            else place_along(self._context, at, length, into, is_one=is_one)
            for at, length, into, is_one, doubt in zip(
                index[self._skipped :],
                self._given.lengths,
                self._selection.lengths[self._skipped :],
                self._stretches,
                self._is_in_doubt,
                strict=True,
            )
        ]
        return self._given.at(tuple(own))

    def write(self, into: BufferId, combiner: str) -> None:
        """Emit the stores of the value to a buffer."""
        doubts = [doubt for doubt in self._is_in_doubt if doubt is not None]
        if not doubts:
            self._run(into, combiner, is_exact=False)
            return
        is_exact = self._context.folded("and", doubts[0], doubts[1:])
        # Broadcast values are rare: the common loop has accesses with constant strides.
        self._context.branch(
            is_exact,
            lambda: self._run(into, combiner, is_exact=True),
            lambda: self._run(into, combiner, is_exact=False),
        )

    def _run(self, into: BufferId, combiner: str, *, is_exact: bool) -> None:
        builder, selection = self._context.builder, self._selection
        dtype = builder.program.buffers[into].dtype

        def store(index: Index, place: Index) -> None:
            value = builder.cast(self._at(index, is_exact=is_exact), dtype)
            builder.store(into, place, value, combiner, is_guarded=selection.is_guarded)

        selection.nest(store)
