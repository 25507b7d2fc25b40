"""Frame of a call from Numba's code: the context with allocators that machine code receives.

Numba's reference-counted runtime owns the memory of outputs.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from llvmlite import ir
from numba.core import cgutils

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.linking.numba.interface import Interface

I8: Final = ir.IntType(8)
I64: Final = ir.IntType(64)
POINTER: Final = I8.as_pointer()
_DIMS: Final = I64.as_pointer()
_ALLOCATE_TYPE: Final = ir.FunctionType(POINTER, [POINTER, I64, _DIMS])
_SCRATCH_TYPE: Final = ir.FunctionType(POINTER, [POINTER, I64])

_N_DETAILS: Final = 8
# Arenas and results are aligned to cache lines and the widest vectors.
_ALIGNMENT: Final = 64
# The fields of the context, in order. The machine code accesses the first three.
_ALLOCATE, _SCRATCH, _DETAILS, _ARENA, _OWNERS, _DATA, _LENGTHS = range(7)
# Arenas up to this size are on the stack. Threads have stacks of at least two megabytes.
_STACK_BYTES: Final = 1 << 16


class Frame:
    """The context of one call, in a function under construction.

    Parameters
    ----------
    context
        Numba's context.
    builder
        The builder of the function.
    interface
        The interface of the machine code.

    Attributes
    ----------
    pointer
        The pointer that the machine code receives.
    """

    def __init__(self, context: Any, builder: Any, interface: Interface) -> None:
        self._context = context
        self._builder = builder
        self._outputs = interface.outputs
        # The position of each output's lengths among those of all outputs.
        self._first = [0, *accumulate(one.ndim for one in interface.outputs)]
        n_outputs = len(interface.outputs)
        self._type = ir.LiteralStructType(
            [
                POINTER,
                POINTER,
                ir.ArrayType(I64, _N_DETAILS),
                POINTER,
                ir.ArrayType(POINTER, n_outputs),
                ir.ArrayType(POINTER, n_outputs),
                ir.ArrayType(I64, self._first[-1]),
            ]
        )
        n_scratch = interface.n_scratch
        self._is_on_stack = n_scratch is not None and n_scratch <= _STACK_BYTES
        self._frame = cgutils.alloca_once(builder, self._type)
        callbacks = [self._allocator(), self._scratch()]
        for field, function in zip((_ALLOCATE, _SCRATCH), callbacks, strict=True):
            builder.store(builder.bitcast(function, POINTER), self._place(field))
        arena = POINTER(None)
        if self._is_on_stack:
            arena = cgutils.alloca_once(builder, I8, size=(n_scratch or 0) + _ALIGNMENT)
        builder.store(arena, self._place(_ARENA))
        for output in range(n_outputs):
            builder.store(POINTER(None), self._place(_OWNERS, output))
        self.pointer = builder.bitcast(self._frame, POINTER)

    def _place(self, field: int, *inside: Any) -> Any:
        return cgutils.gep_inbounds(self._builder, self._frame, 0, field, *inside)

    def details(self) -> list[Any]:
        """Emit loads of the numbers of a failure."""
        return [self._builder.load(self._place(_DETAILS, k)) for k in range(_N_DETAILS)]

    def owner(self, output: int) -> Any:
        """Emit a load of Numba's owner of an output's memory."""
        return self._builder.load(self._place(_OWNERS, output))

    def data(self, output: int) -> Any:
        """Emit a load of the address of an output's elements."""
        return self._builder.load(self._place(_DATA, output))

    def lengths(self, output: int) -> list[Any]:
        """Emit loads of the lengths of an output."""
        axes = range(self._first[output], self._first[output + 1])
        return [self._builder.load(self._place(_LENGTHS, axis)) for axis in axes]

    def release(self, owner: Any) -> None:
        """Emit the release of a reference to memory, which may be null."""
        kind = ir.FunctionType(ir.VoidType(), [POINTER])
        function = cgutils.get_or_insert_function(self._builder.module, kind, "NRT_decref")
        self._builder.call(function, [owner])

    def release_outputs(self) -> None:
        """Emit the release of the outputs that have been allocated."""
        if self._outputs:
            with cgutils.for_range(self._builder, I64(len(self._outputs))) as loop:
                self.release(self._builder.load(self._place(_OWNERS, loop.index)))

    def release_arena(self) -> None:
        """Emit the release of the memory of intermediate results."""
        if not self._is_on_stack:
            arena = self._builder.load(self._place(_ARENA))
            with self._builder.if_then(cgutils.is_not_null(self._builder, arena)):
                self._context.nrt.free(self._builder, arena)

    def _function(self, kind: Any, name: str) -> tuple[Any, Any]:
        module = self._builder.module
        function = ir.Function(module, kind, module.get_unique_name(f"native.{name}"))
        # LLVM's linker renames internal functions on a collision.
        function.linkage = "internal"
        return function, ir.IRBuilder(function.append_basic_block("start"))

    def _allocator(self) -> Any:
        """Add the function that allocates the memory of an output."""
        outputs = self._outputs
        function, builder = self._function(_ALLOCATE_TYPE, "allocate")
        if not outputs:
            builder.ret(POINTER(None))
            return function
        given, output, dims = function.args
        frame = builder.bitcast(given, self._type.as_pointer())
        rows = {
            "ndim": [one.ndim for one in outputs],
            "itemsize": [np.dtype(one.dtype).itemsize for one in outputs],
            "first": self._first[:-1],
        }

        def entry(name: str) -> Any:
            table = cgutils.global_constant(builder, f"native.{name}", constant_row(rows[name]))
            return builder.load(cgutils.gep_inbounds(builder, table, 0, output))

        ndim, itemsize, first = map(entry, rows)
        size = cgutils.alloca_once_value(builder, itemsize)
        with cgutils.for_range(builder, ndim) as loop:
            length = builder.load(cgutils.gep_inbounds(builder, dims, loop.index))
            product = builder.smul_with_overflow(builder.load(size), length)
            is_wrong = builder.or_(
                builder.extract_value(product, 1), builder.icmp_signed("<", length, I64(0))
            )
            with builder.if_then(is_wrong, likely=False):
                builder.ret(POINTER(None))
            builder.store(builder.extract_value(product, 0), size)
            place = cgutils.gep_inbounds(
                builder, frame, 0, _LENGTHS, builder.add(first, loop.index)
            )
            builder.store(length, place)
        nrt = self._context.nrt
        owner = nrt.meminfo_alloc_aligned_unchecked(builder, builder.load(size), _ALIGNMENT)
        with builder.if_then(cgutils.is_null(builder, owner), likely=False):
            builder.ret(POINTER(None))
        data = nrt.meminfo_data(builder, owner)
        builder.store(owner, cgutils.gep_inbounds(builder, frame, 0, _OWNERS, output))
        builder.store(data, cgutils.gep_inbounds(builder, frame, 0, _DATA, output))
        builder.ret(data)
        return function

    def _scratch(self) -> Any:
        """Add the function that allocates an arena."""
        function, builder = self._function(_SCRATCH_TYPE, "scratch")
        given, size = function.args
        frame = builder.bitcast(given, self._type.as_pointer())
        place = cgutils.gep_inbounds(builder, frame, 0, _ARENA)
        if self._is_on_stack:
            arena = builder.load(place)
        else:
            kind = ir.FunctionType(POINTER, [I64])
            allocate = cgutils.get_or_insert_function(builder.module, kind, "NRT_Allocate")
            arena = builder.call(allocate, [builder.add(size, I64(_ALIGNMENT))])
            builder.store(arena, place)
            with builder.if_then(cgutils.is_null(builder, arena), likely=False):
                builder.ret(POINTER(None))
        last = builder.add(builder.ptrtoint(arena, I64), I64(_ALIGNMENT - 1))
        start = builder.and_(last, I64(-_ALIGNMENT))
        builder.ret(builder.inttoptr(start, POINTER))
        return function


def constant_row(row: Sequence[int]) -> Any:
    """Return a constant array of integers."""
    return ir.Constant(ir.ArrayType(I64, len(row)), [I64(one) for one in row])
