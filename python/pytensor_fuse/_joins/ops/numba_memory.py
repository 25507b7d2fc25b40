"""Views at addresses in the memory of other arrays, for code that Numba compiles.

Numba's public interface has no view at an address and no view that does not keep its memory alive,
and it does not tell the size of the memory that an array keeps. Only this module uses Numba's
internals for that: its records of memory (meminfo), and the values behind its array structs.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.core.extending import intrinsic
from numba.core.runtime.nrtdynmod import (
    _meminfo_struct_type as meminfo_struct_type,  # noqa: PLC2701 - no public name says the size
)
from numba.np.arrayobj import make_array, populate_array

# Fields of the meminfo record.
_DATA, _SIZE = 3, 4


@intrinsic
def end_of_memory(typingctx: Any, array: Any) -> Any:
    """Return the end address of an array's memory, or 0 if Numba did not allocate it."""
    signature = types.intp(array)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        memory = make_array(signature.args[0])(context, builder, args[0]).meminfo
        word = context.get_value_type(types.intp)
        end = cgutils.alloca_once_value(builder, word(0))
        with builder.if_then(cgutils.is_not_null(builder, memory)):
            record = builder.bitcast(memory, meminfo_struct_type.as_pointer())
            data = builder.load(cgutils.gep_inbounds(builder, record, 0, _DATA))
            size = builder.load(cgutils.gep_inbounds(builder, record, 0, _SIZE))
            # Memory that Python allocated has a record without a size.
            with builder.if_then(builder.icmp_unsigned("!=", size, word(0))):
                builder.store(builder.add(builder.ptrtoint(data, word), size), end)
        return builder.load(end)

    return signature, codegen


@intrinsic
def keeping(typingctx: Any, array: Any, address: Any, shape: Any) -> Any:
    """Return the contiguous array at an address in the memory of ``array``, with a reference."""
    return _contiguous(array, address, shape, keeps=True)


@intrinsic
def borrowing(typingctx: Any, array: Any, address: Any, shape: Any) -> Any:
    """Return the contiguous array at an address in the memory of ``array``, without a reference.

    Reference counting is atomic, and costs as much as small kernels do.
    """
    return _contiguous(array, address, shape, keeps=False)


@intrinsic
def disowned(typingctx: Any, array: Any) -> Any:
    """Return an array without its reference to the memory; see `borrowing`."""
    signature = array(array)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        part = make_array(array)(context, builder, args[0])
        part.meminfo = cgutils.get_null_value(part.meminfo.type)
        part.parent = cgutils.get_null_value(part.parent.type)
        return _value(part)

    return signature, codegen


def _contiguous(array: Any, address: Any, shape: Any, *, keeps: bool) -> Any:
    array_type = types.Array(array.dtype, len(shape), "C")
    signature = array_type(array, address, shape)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = make_array(signature.args[0])(context, builder, args[0])
        part = make_array(array_type)(context, builder)
        word = context.get_value_type(types.intp)
        item = word(context.get_abi_sizeof(context.get_data_type(array_type.dtype)))
        strides = []
        stride: Any = item
        for length in reversed(cgutils.unpack_tuple(builder, args[2])):
            strides.append(stride)
            stride = builder.mul(stride, length)
        populate_array(
            part,
            data=builder.inttoptr(args[1], part.data.type),
            shape=args[2],
            strides=cgutils.pack_array(builder, strides[::-1], ty=word),
            itemsize=item,
            meminfo=whole.meminfo if keeps else None,
        )
        if keeps:
            context.nrt.incref(builder, array_type, _value(part))
        return _value(part)

    return signature, codegen


def _value(struct: Any) -> Any:
    """Return the value of an array struct, as Numba's own implementations do."""
    return struct._getvalue()  # noqa: SLF001 - there is no public way to return a struct
