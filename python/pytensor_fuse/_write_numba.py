"""Numba's implementations of the ops of `_write_ops`. Imported only once Numba's dispatch is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic
from numba.core.runtime.nrtdynmod import _meminfo_struct_type
from numba.np.arrayobj import make_array, populate_array
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

from pytensor_fuse._write_ops import STATIC, WriteJoin, WriteSplit

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply

# Part of the cache keys: raise it when the code that is made changes.
_VERSION = 1


@intrinsic
def _allocation(typingctx: Any, array: Any) -> Any:
    """Return who owns an array's memory, and where that begins and ends, all as integers.

    Memory that Numba has not allocated has no known end: it begins and ends at 0.
    """
    signature = types.UniTuple(types.intp, 3)(array)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        owner = make_array(signature.args[0])(context, builder, args[0]).meminfo
        word = context.get_value_type(types.intp)
        number = builder.ptrtoint(owner, word)
        results = [cgutils.alloca_once_value(builder, word(0)) for _ in range(2)]
        with builder.if_then(builder.icmp_unsigned("!=", number, word(0))):
            record = builder.bitcast(owner, _meminfo_struct_type.as_pointer())
            start = builder.ptrtoint(
                builder.load(cgutils.gep_inbounds(builder, record, 0, 3)), word
            )
            length = builder.load(cgutils.gep_inbounds(builder, record, 0, 4))
            builder.store(start, results[0])
            builder.store(builder.add(start, length), results[1])
        return context.make_tuple(
            builder, signature.return_type, [number, *(builder.load(r) for r in results)]
        )

    return signature, codegen


@intrinsic
def _array_around(typingctx: Any, array: Any, address: Any, shape: Any) -> Any:
    """Return the C-contiguous array at an address within the memory that ``array`` lies in."""
    kind = types.Array(array.dtype, len(shape), "C")
    signature = kind(array, address, shape)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        inner = make_array(signature.args[0])(context, builder, args[0])
        outer = make_array(kind)(context, builder)
        item = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        word = context.get_value_type(types.intp)
        lengths = cgutils.unpack_tuple(builder, args[2])
        strides = []
        stride: Any = ir.Constant(word, item)
        for length in reversed(lengths):
            strides.append(stride)
            stride = builder.mul(stride, length)
        populate_array(
            outer,
            data=builder.inttoptr(args[1], outer.data.type),
            shape=args[2],
            strides=cgutils.pack_array(builder, strides[::-1]),
            itemsize=ir.Constant(word, item),
            meminfo=inner.meminfo,
        )
        context.nrt.incref(builder, kind, outer._getvalue())
        return outer._getvalue()

    return signature, codegen


@register_funcify_default_op_cache_key(WriteSplit)  # type: ignore[untyped-decorator]
def _write_split(op: WriteSplit, node: Apply[Any], **kwargs: Any) -> Any:
    names = [f"x{i}" for i in range(len(node.inputs))]
    lines = []
    shapes = [
        [str(n) if source == STATIC else f"x{source}.shape[{n}]" for source, n in shape]
        for shape in op.shapes
    ]
    if op.ndim > 1:
        for d in range(op.ndim):
            if d == op.axis:
                continue
            tests = [f"{shape[d]} != {shapes[0][d]}" for shape in shapes[1:]]
            tests = [test for test in tests if len({*test.split(" != ")}) > 1]
            if tests:
                lines += [f"if {' or '.join(tests)}:", "    raise ValueError(mismatch)"]
    starts = []
    end = "0"
    for i, shape in enumerate(shapes):
        starts.append(end)
        length = "*".join(shape) or "1" if op.ndim == 1 else shape[op.axis]
        lines.append(f"e{i} = {end} + {length}")
        end = f"e{i}"
    dims = [end if d == op.axis else shapes[0][d] for d in range(op.ndim)]
    lines.append(f"whole = np.empty(({', '.join(dims)},), dtype)")
    parts = []
    for i, (shape, written) in enumerate(zip(shapes, op.written, strict=True)):
        if not written:
            continue
        part = f"whole[{':, ' * op.axis}{starts[i]}:e{i}]"
        if op.ndim == 1 and len(shape) != 1:
            part += f".reshape(({', '.join(shape)}{',' * bool(shape)}))"
        parts.append(part)
    lines.append(f"return {parts[0]}" if len(parts) == 1 else f"return ({', '.join(parts)})")
    return _compiled("write_split", names, lines, dtype=np.dtype(op.dtype)), _VERSION


@register_funcify_default_op_cache_key(WriteJoin)  # type: ignore[untyped-decorator]
def _write_join(op: WriteJoin, node: Apply[Any], **kwargs: Any) -> Any:
    n, ndim, axis = len(node.inputs), op.ndim, op.axis
    names = [f"w{i}" for i in range(n)]
    lines = []
    starts = []
    end = "0"
    for i in range(n):
        starts.append(end)
        lines.append(f"e{i} = {end} + {f'w{i}.size' if ndim == 1 else f'w{i}.shape[{axis}]'}")
        end = f"e{i}"
    for d in range(ndim):
        if d != axis and n > 1:
            tests = [f"w{i}.shape[{d}] != w0.shape[{d}]" for i in range(1, n)]
            lines += [f"if {' or '.join(tests)}:", "    raise ValueError(mismatch)"]
    dims = [end if d == axis else f"w0.shape[{d}]" for d in range(ndim)]
    shape = f"({', '.join(dims)},)"
    step = "*".join([*dims[axis + 1 :], str(np.dtype(op.dtype).itemsize)])
    written = [i for i, is_written in enumerate(op.written) if is_written]
    first = written[0]
    lines += [
        f"step = {step}",
        f"owner, begin, stop = allocation(w{first})",
        f"at = w{first}.ctypes.data - {starts[first]} * step",
        f"size = {'*'.join([*dims[:axis], end])} * step",
        "in_place = owner != 0 and at == begin and at + size <= stop",
    ]
    for i in written:
        tests = (
            []
            if i == first
            else [
                f"allocation(w{i})[0] == owner",
                f"w{i}.ctypes.data == at + {starts[i]} * step",
            ]
        )
        tests += _layout_tests(i, ndim, axis, dims, op.dtype, node.inputs[i].type.ndim)
        if tests:
            lines.append(f"in_place = in_place and {' and '.join(tests)}")
    lines += ["if in_place:", f"    whole = array_around(w{first}, at, {shape})", "else:"]
    lines.append(f"    whole = np.empty({shape}, dtype)")
    for i in written:
        lines.append(f"    {_copy(i, starts[i], axis, ndim, node.inputs[i].type.ndim)}")
    for i in range(n):
        if i not in written:
            lines.append(_copy(i, starts[i], axis, ndim, node.inputs[i].type.ndim))
    lines.append("return whole" + ", None" * (len(written) - 1))
    return (
        _compiled(
            "write_join",
            names,
            lines,
            dtype=np.dtype(op.dtype),
            allocation=_allocation,
            array_around=_array_around,
        ),
        _VERSION,
    )


def _layout_tests(
    i: int, ndim: int, axis: int, dims: list[str], dtype: str, stream_ndim: int
) -> list[str]:
    """Return tests of whether the elements of a written stream follow each other as they should."""
    if axis == 0:
        return [f"w{i}.flags.c_contiguous"]
    item = str(np.dtype(dtype).itemsize)
    return [
        f"(w{i}.shape[{d}] <= 1 or w{i}.strides[{d}] == {'*'.join([*dims[d + 1 :], item])})"
        for d in range(stream_ndim)
    ]


def _copy(i: int, start: str, axis: int, ndim: int, stream_ndim: int) -> str:
    if ndim == 1 and stream_ndim != 1:
        return f"whole[{start}:e{i}].reshape(w{i}.shape)[...] = w{i}"
    return f"whole[{':, ' * axis}{start}:e{i}] = w{i}"


def _compiled(name: str, arguments: list[str], lines: list[str], **names: Any) -> Any:
    body = "\n".join(f"    {line}" for line in lines)
    source = f"def {name}({', '.join(arguments)}):\n{body}\n"
    known = {
        "np": np,
        "mismatch": "all dimensions of joined tensors other than the axis must match",
        **names,
    }
    return numba_njit(compile_numba_function_src(source, name, known), boundscheck=False)
