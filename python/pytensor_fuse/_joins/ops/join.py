"""`WriteJoin`: an op that returns the result once its streams are in their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Apply, Constant
from pytensor.link.c.op import COp
from pytensor.tensor.basic import constant
from pytensor.tensor.math import add, mul
from pytensor.tensor.type import TensorType
from pytensor.tensor.type_other import none_type_t

from pytensor_fuse._joins.ops.c_helpers import c_helpers, c_helpers_version, c_type_number
from pytensor_fuse._joins.ops.layout import joined_shape, part_of
from pytensor_fuse._pytensor.ops.versions_of_ops import shape_inference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable


class WriteJoin(COp):
    """Joins streams, without copying written ones that are still in their places.

    The first input keeps the memory alive, and the first output is the joined tensor. The other
    outputs represent the destruction of the written streams, and are None.

    Parameters
    ----------
    axis
        The axis of the join.
    dtype, shape
        Dtype and shape of the result, the latter as in a tensor type. In a one-dimensional result,
        streams of other numbers of dimensions are raveled.
    written
        For each stream, whether `WriteSplit` made its memory.
    """

    __props__ = ("axis", "dtype", "shape", "written")
    check_input = False

    def __init__(
        self, axis: int, dtype: str, shape: tuple[int | None, ...], written: tuple[bool, ...]
    ) -> None:
        self.axis = axis
        self.dtype = dtype
        self.shape = shape
        self.written = written
        taken = [0, *(i for i, is_written in enumerate(written, 1) if is_written)]
        self.destroy_map = {i: [position] for i, position in enumerate(taken)}

    @property
    def ndim(self) -> int:
        """The number of dimensions of the result."""
        return len(self.shape)

    def __str__(self) -> str:
        return f"WriteJoin{{axis={self.axis}, written={sum(self.written)}/{len(self.written)}}}"

    def make_node(self, *inputs: Variable[Any, Any]) -> Apply[Any]:
        """Return the node that joins the inputs after the first one, which keeps the memory."""
        joined = TensorType(self.dtype, shape=self.shape)()
        return Apply(
            self, list(inputs), [joined, *(none_type_t() for _ in range(len(self.destroy_map) - 1))]
        )

    @shape_inference
    def infer_shape(self, node: Apply[Any], shapes: list[Any]) -> list[tuple[Any, ...] | None]:
        """Return the shape of the joined tensor, and None for the other outputs."""
        streams = shapes[1:]
        if self.ndim == 1:
            whole = [_total([_raveled(shape) for shape in streams])]
        else:
            whole = [
                _total(along) if d == self.axis else _agreed(along)
                for d, along in enumerate(zip(*streams, strict=True))
            ]
        return [tuple(whole), *[None] * (len(node.outputs) - 1)]

    def perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:
        """Return the array of the written streams, after copying the other streams into it.

        Raises
        ------
        ValueError
            If the streams differ in a dimension other than the axis.
        """
        memory, *streams = inputs
        lengths, shape = joined_shape([stream.shape for stream in streams], self.axis, self.ndim)
        whole = self._written_whole(memory, streams, lengths, shape)
        in_place = whole is not None
        if whole is None:
            whole = np.empty(shape, self.dtype)
        start = 0
        for stream, length, written in zip(streams, lengths, self.written, strict=True):
            if not (in_place and written):
                part_of(whole, self.axis, start, length, stream.shape)[...] = stream
            start += length
        output_storage[0][0] = whole
        for storage in output_storage[1:]:
            storage[0] = None

    def _written_whole(
        self, memory: Any, streams: Sequence[Any], lengths: list[int], shape: tuple[int, ...]
    ) -> Any:
        """Return the array that ``memory`` views if the written streams are in place, else None."""
        whole = memory.base
        if (
            type(whole) is not np.ndarray
            or not whole.flags.owndata
            or not whole.flags.c_contiguous
            or whole.shape != shape
            or whole.dtype != self.dtype
        ):
            return None
        start = 0
        for stream, length, written in zip(streams, lengths, self.written, strict=True):
            if written and (
                stream.dtype != whole.dtype
                or not _same_memory(stream, part_of(whole, self.axis, start, length, stream.shape))
            ):
                return None
            start += length
        return whole

    def c_support_code(self, **kwargs: Any) -> str:
        return c_helpers()

    def c_code_cache_version(self) -> tuple[Any, ...]:
        return (3, c_helpers_version())

    def c_code(
        self, node: Apply[Any], name: str, inputs: list[str], outputs: list[str], sub: Any
    ) -> str:
        memory, *streams = inputs
        joined, *others = outputs
        n = len(streams)
        written = ", ".join(str(int(is_written)) for is_written in self.written)
        nothing = "\n".join(
            f"Py_XDECREF({other}); Py_INCREF(Py_None); {other} = Py_None;" for other in others
        )
        return f"""
        {{
            PyArrayObject *const streams[{n}] = {{{", ".join(streams)}}};
            static const char written[{n}] = {{{written}}};
            joins_block blocks[{n}];
            npy_intp dims[{self.ndim}];
            PyArrayObject *whole = joins_join(
                {memory}, {n}, streams, written, blocks, {self.axis}, {self.ndim}, dims,
                {c_type_number(self.dtype)});
            if (whole == NULL) {{ {sub["fail"]} }}
            Py_XDECREF({joined});
            {joined} = whole;
            {nothing}
        }}
        """


def _total(along: Sequence[Any]) -> Any:
    return add(*along) if len(along) > 1 else along[0]


def _raveled(shape: Sequence[Any]) -> Any:
    """Return the length of a stream of this shape after raveling."""
    if not shape:
        return constant(1, dtype="int64")
    return mul(*shape) if len(shape) > 1 else shape[0]


def _agreed(lengths: Sequence[Any]) -> Any:
    """Return one of several equal lengths, preferably a constant."""
    return next((n for n in lengths if isinstance(n, Constant)), lengths[0])


def _same_memory(one: Any, other: Any) -> bool:
    """Return whether arrays of one shape and dtype have each element at the same address."""
    return one.ctypes.data == other.ctypes.data and all(
        n <= 1 or a == b for n, a, b in zip(one.shape, one.strides, other.strides, strict=True)
    )
