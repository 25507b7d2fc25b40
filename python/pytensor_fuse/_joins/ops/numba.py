"""Numba's implementations of the ops, imported only after Numba's dispatch."""

from __future__ import annotations

import mmap
import os
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types
from numba.core.extending import overload
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import (
    default_hash_key_from_props,
    numba_njit,
    register_funcify_and_cache_key,
    register_funcify_default_op_cache_key,
)

from pytensor_fuse._joins.ops.fill import WriteFill
from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.ops.layout import NEGATIVE_LENGTH, SHAPE_MISMATCH, SLOT_MISMATCH
from pytensor_fuse._joins.ops.numba_memory import borrowing, disowned, end_of_memory, keeping
from pytensor_fuse._joins.ops.split import WriteSplit

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply

    from pytensor_fuse._joins.ops.layout import Length

# Part of the cache keys; increase it when the generated code changes.
_VERSION = 6

# Huge pages are requested as NumPy does for its own arrays, unless the environment disables that:
# page faults on the first touch of small pages take longer than the rest of a cheap kernel.
_USES_HUGE_PAGES = (
    hasattr(mmap, "MADV_HUGEPAGE") and os.environ.get("NUMPY_MADVISE_HUGEPAGE", "1") != "0"
)
_MIN_HUGE_BYTES = 1 << 22
_advise = types.ExternalFunction("madvise", types.intc(types.intp, types.intp, types.intc))


@register_funcify_and_cache_key(WriteSplit)  # type: ignore[untyped-decorator]
def _write_split(op: WriteSplit, node: Apply[Any], **kwargs: Any) -> Any:
    layout = op.layout
    names = [f"x{i}" for i in range(len(node.inputs))]
    lines = []
    shapes = [[_length(length) for length in shape] for shape in layout.shapes]
    for length in dict.fromkeys(chain(*layout.shapes)):
        if length.is_value:
            lines += [f"if {_length(length)} < 0:", "    raise ValueError(negative_length)"]
    if layout.ndim > 1:
        for d in range(layout.ndim):
            if d == layout.axis:
                continue
            tests = [f"{shape[d]} != {shapes[0][d]}" for shape in shapes[1:]]
            tests = [test for test in tests if len({*test.split(" != ")}) > 1]
            if tests:
                lines += [f"if {' or '.join(tests)}:", "    raise ValueError(shape_mismatch)"]
    *starts, end = ["0", *(f"e{i}" for i in range(len(shapes)))]
    for i, shape in enumerate(shapes):
        along = "*".join(shape) or "1" if layout.ndim == 1 else shape[layout.axis]
        lines.append(f"e{i} = {starts[i]} + {along}")
    if layout.total is not None:
        lines.append(f"total = {_length(layout.total)}")
        for i, slot in enumerate(layout.slots):
            if slot is not None:
                to = "total" if slot.stop is None else f"min(total, {slot.stop})"
                lines.append(f"if e{i} - {starts[i]} != {to} - min(total, {slot.start}):")
                lines.append("    raise ValueError(slot_mismatch)")
    dims = [end if d == layout.axis else shapes[0][d] for d in range(layout.ndim)]
    lines.append(f"whole = np.empty(({', '.join(dims)},), dtype)")
    lines.append("at = whole.ctypes.data")
    if _USES_HUGE_PAGES:
        page = mmap.PAGESIZE
        lines += [
            f"if whole.nbytes >= {_MIN_HUGE_BYTES}:",
            f"    first_page = (at + {page - 1}) // {page} * {page}",
            f"    advise(first_page, at + whole.nbytes - first_page, {mmap.MADV_HUGEPAGE})",
        ]
    step = "*".join([*dims[layout.axis + 1 :], str(np.dtype(layout.dtype).itemsize)])
    lines.append(f"step = {step}")
    parts = ["keeping(whole, at, (0,))"]
    borrowed = iter(op.borrowed or (False,) * sum(layout.written))
    for i, (shape, written) in enumerate(zip(shapes, layout.written, strict=True)):
        if not written:
            continue
        borrows = next(borrowed)
        if layout.axis == 0:
            lengths = ", ".join(shape) + "," * (len(shape) == 1)
            made = "borrowing" if borrows else "keeping"
            parts.append(f"{made}(whole, at + {starts[i]} * step, ({lengths}))")
        else:
            part = f"whole[{':, ' * layout.axis}{starts[i]}:e{i}]"
            parts.append(f"disowned({part})" if borrows else part)
    lines.append(f"return ({', '.join(parts)})")
    function = _compiled(
        "write_split",
        names,
        lines,
        dtype=np.dtype(layout.dtype),
        keeping=keeping,
        borrowing=borrowing,
        disowned=disowned,
        advise=_advise,
    )
    # The number that distinguishes nodes of one graph does not affect the code.
    alike = WriteSplit(layout, borrowed=op.borrowed)
    version = f"{_VERSION}, huge pages: {_USES_HUGE_PAGES}"
    return function, default_hash_key_from_props(alike, cache_version=version)


def _length(length: Length[int]) -> str:
    if length.source is None:
        return str(length.static)
    value = f"x{length.source}"
    return f"{value}.item()" if length.dim is None else f"{value}.shape[{length.dim}]"


@register_funcify_default_op_cache_key(WriteFill)  # type: ignore[untyped-decorator]
def _write_fill(op: WriteFill, node: Apply[Any], **kwargs: Any) -> Any:
    lines = ["part[...] = number.item()", "return part"]
    return _compiled("write_fill", ["number", "part"], lines), _VERSION


@register_funcify_default_op_cache_key(WriteJoin)  # type: ignore[untyped-decorator]
def _write_join(op: WriteJoin, node: Apply[Any], **kwargs: Any) -> Any:
    # The code depends only on the op's properties, since these are the cache key.
    n, ndim, axis = len(op.written), op.ndim, op.axis
    names = ["memory", *(f"w{i}" for i in range(n))]
    *starts, end = ["0", *(f"e{i}" for i in range(n))]
    lengths = [f"w{i}.size" if ndim == 1 else f"w{i}.shape[{axis}]" for i in range(n)]
    lines = [f"e{i} = {starts[i]} + {length}" for i, length in enumerate(lengths)]
    for d in range(ndim):
        if d != axis and n > 1:
            tests = [f"w{i}.shape[{d}] != w0.shape[{d}]" for i in range(1, n)]
            lines += [f"if {' or '.join(tests)}:", "    raise ValueError(shape_mismatch)"]
    dims = [end if d == axis else f"w0.shape[{d}]" for d in range(ndim)]
    shape = f"({', '.join(dims)},)"
    step = "*".join([*dims[axis + 1 :], str(np.dtype(op.dtype).itemsize)])
    written = [i for i, is_written in enumerate(op.written) if is_written]
    lines += [
        f"step = {step}",
        "at = memory.ctypes.data",
        f"size = {'*'.join([*dims[:axis], end])} * step",
        "in_place = at + size <= end_of_memory(memory)",
    ]
    for i in written:
        tests = [f"w{i}.ctypes.data == at + {starts[i]} * step"]
        tests += _layout_tests(i, ndim, axis, dims, op.dtype)
        lines.append(f"in_place = in_place and {' and '.join(tests)}")
    lines += ["if in_place:", f"    whole = keeping(memory, at, {shape})", "else:"]
    lines.append(f"    whole = np.empty({shape}, dtype)")
    for i in written:
        lines += [f"    {line}" for line in _copy(i, starts[i], axis, ndim)]
    for i in range(n):
        if i not in written:
            lines += _copy(i, starts[i], axis, ndim)
    lines.append("return whole" + ", None" * len(written))
    return (
        _compiled(
            "write_join",
            names,
            lines,
            dtype=np.dtype(op.dtype),
            end_of_memory=end_of_memory,
            keeping=keeping,
            copy=_copy_raveled,
        ),
        _VERSION,
    )


def _layout_tests(i: int, ndim: int, axis: int, dims: list[str], dtype: str) -> list[str]:
    """Return tests of whether a written stream has the strides of its part of the result."""
    if axis == 0:
        return [f"w{i}.flags.c_contiguous"]
    item = str(np.dtype(dtype).itemsize)
    return [
        f"(w{i}.shape[{d}] <= 1 or w{i}.strides[{d}] == {'*'.join([*dims[d + 1 :], item])})"
        for d in range(ndim)
    ]


def _copy(i: int, start: str, axis: int, ndim: int) -> list[str]:
    """Return the loops that copy a stream to its place.

    Assignment to a slice would first check for overlap, and is not vectorized. Neither is a loop
    with an offset that may be negative.
    """
    if ndim == 1:
        return [f"copy(whole, {start}, w{i})"]
    indent = ""
    lines = []
    for d in range(ndim):
        lines.append(f"{indent}for j{d} in range(w{i}.shape[{d}]):")
        indent += "    "
    place = [f"np.uint64(j{d}) + np.uint64({start})" if d == axis else f"j{d}" for d in range(ndim)]
    element = ", ".join(f"j{d}" for d in range(ndim))
    return [*lines, f"{indent}whole[{', '.join(place)}] = w{i}[{element}]"]


def _copy_raveled(whole: Any, start: int, stream: Any) -> None:
    raise NotImplementedError("only code that Numba compiles can call this")


@overload(_copy_raveled)
def _copy_any(whole: Any, start: Any, stream: Any) -> Any:
    if stream.ndim == 1:

        def copy_vector(whole: Any, start: Any, stream: Any) -> None:
            first = np.uint64(start)
            for j in range(stream.size):
                whole[np.uint64(j) + first] = stream[j]

        return copy_vector

    def copy_elements(whole: Any, start: Any, stream: Any) -> None:
        j = np.uint64(start)
        for element in stream.flat:
            whole[j] = element
            j += np.uint64(1)

    return copy_elements


def _compiled(name: str, arguments: list[str], lines: list[str], **names: Any) -> Any:
    body = "\n".join(f"    {line}" for line in lines)
    source = f"def {name}({', '.join(arguments)}):\n{body}\n"
    known = {
        "np": np,
        "shape_mismatch": SHAPE_MISMATCH,
        "slot_mismatch": SLOT_MISMATCH,
        "negative_length": NEGATIVE_LENGTH,
        **names,
    }
    return numba_njit(compile_numba_function_src(source, name, known), boundscheck=False)
