"""`WriteSplit`: an op that allocates a join's result, and returns the parts that kernels write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.link.c.op import COp
from pytensor.tensor.type import TensorType, values_eq_approx_always_true

from pytensor_fuse._joins.ops.c_helpers import c_helpers, c_helpers_version, c_type_number
from pytensor_fuse._joins.ops.layout import (
    NEGATIVE_LENGTH,
    SLOT_MISMATCH,
    JoinLayout,
    joined_shape,
    part_of,
)
from pytensor_fuse._pytensor.ops.versions_of_ops import shape_inference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._joins.ops.layout import Length


class WriteSplit(COp):
    """Allocates the result of a join, and returns the parts that kernels write.

    Its inputs are lengths, or arrays of which only the shapes are read. The first output is the
    view of no elements that keeps the memory alive; the parts follow, in the order of the written
    streams.

    Parameters
    ----------
    layout
        The result and its streams.
    number
        Distinguishes otherwise equal nodes of one graph, which must not be merged.
    reuse
        Whether C code keeps the result, to reuse its memory in the next call if nothing else holds
        it by then. In Python and Numba, the op allocates in each call, since it cannot see the
        holders of memory there.
    borrowed
        For each part, whether its kernel has no outputs that anything but the join reads. Such a
        kernel is removed together with the join, so that in Numba the part need not keep the memory
        alive. If empty, all parts keep it.
    """

    __props__ = ("layout", "number", "reuse", "borrowed")
    check_input = False

    def __init__(
        self,
        layout: JoinLayout,
        *,
        number: int = 0,
        reuse: bool = False,
        borrowed: tuple[bool, ...] = (),
    ) -> None:
        self.layout = layout
        self.number = number
        self.reuse = reuse
        self.borrowed = borrowed

    def __str__(self) -> str:
        written = self.layout.written
        return f"WriteSplit{{axis={self.layout.axis}, parts={sum(written)}/{len(written)}}}"

    def make_node(self, *sources: Variable[Any, Any]) -> Apply[Any]:
        """Return the node."""
        layout = self.layout
        parts = [TensorType(layout.dtype, shape=(0,))()]
        for shape, written in zip(layout.shapes, layout.written, strict=True):
            if not written:
                continue
            # A separate type, since checks must not look at a part before it is written.
            part_type = TensorType(layout.dtype, shape=tuple(length.static for length in shape))
            part_type.filter_checks_isfinite = False
            part = part_type()
            part.tag.values_eq_approx = values_eq_approx_always_true
            part.tag.nan_guard_mode_check = False
            parts.append(part)
        return Apply(self, list(sources), parts)

    def do_constant_folding(self, fgraph: FunctionGraph, node: Apply[Any]) -> bool:
        """Return False, since the parts are memory, not values."""
        return False

    @shape_inference
    def infer_shape(self, node: Apply[Any], shapes: list[Any]) -> list[tuple[Any, ...]]:
        """Return the lengths of the parts from their sources in the layout."""

        def inferred(length: Length[int]) -> Any:
            if length.source is None:
                return length.static
            return (
                node.inputs[length.source] if length.is_value else shapes[length.source][length.dim]
            )

        streams = zip(self.layout.shapes, self.layout.written, strict=True)
        return [(0,), *(tuple(map(inferred, shape)) for shape, written in streams if written)]

    def perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:
        """Allocate with NumPy.

        Raises
        ------
        ValueError
            If the streams differ in a dimension other than the axis, or do not fit their slots, or
            a length is negative.
        """
        layout = self.layout
        shapes = [tuple([_length_of(inputs, n) for n in shape]) for shape in layout.shapes]
        lengths, whole_shape = joined_shape(shapes, layout.axis, layout.ndim)
        if layout.total is not None:
            total = _length_of(inputs, layout.total)
            for length, slot in zip(lengths, layout.slots, strict=True):
                if slot is not None and length != slot.length_within(total):
                    raise ValueError(f"{SLOT_MISMATCH}: {length} elements for {slot} of {total}")
        whole = np.empty(whole_shape, layout.dtype)
        start = 0
        storage = iter(output_storage)
        next(storage)[0] = whole.reshape(-1)[:0]
        for shape, length, written in zip(shapes, lengths, layout.written, strict=True):
            if written:
                next(storage)[0] = part_of(whole, layout.axis, start, length, shape)
            start += length

    def debug_perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:
        """Allocate, and fill the parts with a value that is unlikely to be right by chance."""
        self.perform(node, inputs, output_storage)
        for storage in output_storage:
            storage[0].fill(True if self.layout.dtype == "bool" else 123)

    def c_support_code(self, **kwargs: Any) -> str:
        return c_helpers()

    def c_code_cache_version(self) -> tuple[Any, ...]:
        return (5, c_helpers_version())

    def c_support_code_struct(self, node: Apply[Any], name: str) -> str:
        return f"PyArrayObject *kept_{name};" if self.reuse else ""

    def c_init_code_struct(self, node: Apply[Any], name: str, sub: dict[str, Any]) -> str:
        return f"kept_{name} = NULL;" if self.reuse else ""

    def c_cleanup_code_struct(self, node: Apply[Any], name: str) -> str:
        return f"Py_CLEAR(kept_{name});" if self.reuse else ""

    def c_code(
        self, node: Apply[Any], name: str, inputs: list[str], outputs: list[str], sub: Any
    ) -> str:
        layout = self.layout
        n, ndim, axis = len(layout.shapes), layout.ndim, layout.axis
        fail = sub["fail"]
        memory, *written = outputs
        following = iter(written)
        parts = [f"&{next(following)}" if is_written else "NULL" for is_written in layout.written]
        blocks = [f"{{{len(shape)}, shape{i}, 0}}" for i, shape in enumerate(layout.shapes)]
        return f"""
        {{
            {self._c_shapes(inputs)}
            joins_block blocks[{n}] = {{{", ".join(blocks)}}};
            npy_intp dims[{ndim}];
            if (joins_check_lengths({n}, blocks) < 0
                    || joins_measure({n}, blocks, {axis}, {ndim}, dims) < 0) {{ {fail} }}
            {self._c_slot_check(inputs, fail)}
            {self._c_result(name, outputs)}
            if (whole == NULL) {{ {fail} }}
            PyArrayObject **parts[{n}] = {{{", ".join(parts)}}};
            if (joins_hand_out(whole, {axis}, &{memory}, {n}, blocks, parts) < 0) {{ {fail} }}
        }}
        """

    def _c_shapes(self, inputs: list[str]) -> str:
        """Return C code that declares the shape of each stream."""
        shapes = [[_c_length(inputs, n) for n in shape] for shape in self.layout.shapes]
        # C has no empty arrays.
        return "\n".join(
            f"const npy_intp shape{i}[] = {{{', '.join(lengths) or '1'}}};"
            for i, lengths in enumerate(shapes)
        )

    def _c_slot_check(self, inputs: list[str], fail: str) -> str:
        """Return C code that checks whether the streams fill their slices."""
        layout = self.layout
        if layout.total is None:
            return ""
        slots = [
            "{0, 0, 0}"
            if slot is None
            else f"{{1, {slot.start}, {-1 if slot.stop is None else slot.stop}}}"
            for slot in layout.slots
        ]
        return f"""
            const joins_slot slots[{len(slots)}] = {{{", ".join(slots)}}};
            npy_intp total = {_c_length(inputs, layout.total)};
            if (joins_check_slots({len(slots)}, blocks, slots, total) < 0) {{ {fail} }}
            """

    def _c_result(self, name: str, outputs: list[str]) -> str:
        """Return C code that defines ``whole``, the array of the result."""
        form = f"{self.layout.ndim}, dims, {c_type_number(self.layout.dtype)}"
        if not self.reuse:
            return f"PyArrayObject *whole = joins_new_result({form});"
        # The views of the last call would count as readers.
        cleared = " ".join(f"Py_CLEAR({output});" for output in outputs)
        return f"{cleared} PyArrayObject *whole = joins_reused_result(&kept_{name}, {form});"


def _length_of(inputs: Sequence[Any], length: Length[int]) -> int:
    if length.source is None:
        return length.static  # type: ignore[return-value]
    if length.dim is not None:
        return int(inputs[length.source].shape[length.dim])
    value = int(inputs[length.source])
    if value < 0:
        raise ValueError(f"{NEGATIVE_LENGTH}: {value}")
    return value


def _c_length(inputs: Sequence[str], length: Length[int]) -> str:
    if length.source is None:
        return str(length.static)
    if length.dim is None:
        return f"(npy_intp)*(npy_int64 *)PyArray_DATA({inputs[length.source]})"
    return f"PyArray_DIMS({inputs[length.source]})[{length.dim}]"
