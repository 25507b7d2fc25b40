"""Body of a Numba function that calls machine code: one intrinsic, which fills its tables.

The call follows the calling convention of `NativeFunction`, except that Numba's runtime owns the
memory: outputs become Numba's arrays without a copy. The interpreter lock is never needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_new_ref
from numba.core.typing.templates import signature
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import as_dtype

from pytensor_fuse._native.linking.numba.frame import I64, POINTER, Frame, constant_row
from pytensor_fuse._native.linking.numba.interface import type_of
from pytensor_fuse._native.linking.numba.messages import message_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.emission.layout import Argument, Returned
    from pytensor_fuse._native.linking.numba.interface import Interface

    Casting = Literal["same_kind", "unsafe"]
    Locate = Callable[[Any, Any], tuple[Any, Any]]

_ENTRY: Final = ir.FunctionType(I64, [POINTER.as_pointer(), I64.as_pointer(), POINTER, POINTER])


def body_of(
    interface: Interface, locate: Locate, *, casting: Casting = "same_kind"
) -> Callable[..., Any]:
    """Return a Python function for Numba that calls machine code.

    Parameters
    ----------
    interface
        The function's inputs and outputs.
    locate
        A function that emits the lookup of the machine code: it gets Numba's context and the
        builder, and returns pointers to the code and to the table of its constants.
    casting
        NumPy's rule by which an argument of another dtype is cast.
    """
    call = _intrinsic_of(interface, locate, casting)
    names = ", ".join(f"x{k}" for k in range(len(interface.inputs)))
    # Numba reads the module's name from the globals of a function.
    scope: dict[str, Any] = {"call": call, "__name__": __name__}
    exec(f"def native({names}): return call({names})", scope)
    made: Callable[..., Any] = scope["native"]
    return made


def _intrinsic_of(interface: Interface, locate: Locate, casting: Casting) -> Any:
    def typed(typing_context: Any, *args: Any) -> Any:
        for position, (kind, given) in enumerate(zip(args, interface.inputs, strict=True)):
            _check(position, kind, given, casting)

        def generate(context: Any, builder: Any, called: Any, values: Any) -> Any:
            return _Call(context, builder, interface).emit(called, values, locate)

        return signature(interface.returns(), *args), generate

    names = "".join(f", x{k}" for k in range(len(interface.inputs)))
    scope: dict[str, Any] = {"typed": typed, "__name__": __name__}
    exec(f"def call(context{names}): return typed(context{names})", scope)
    return intrinsic(scope["call"])


def _check(position: int, kind: Any, given: Argument, casting: Casting) -> None:
    is_number = isinstance(kind, types.Number | types.Boolean)
    ndim = 0 if is_number else kind.ndim if isinstance(kind, types.Array) else None
    dtype = kind if is_number else getattr(kind, "dtype", None)
    wanted = f"argument {position} must be an array of dtype {given.dtype}"
    if ndim != len(given.lengths) or not isinstance(dtype, types.Number | types.Boolean):
        raise TypingError(f"{wanted} and {len(given.lengths)} dimensions, not {kind}")
    # `NativeDispatcher` accepts the same conversions from Python callers.
    its = as_dtype(dtype)
    if isinstance(dtype, types.Complex) or not np.can_cast(its, given.dtype, casting):
        raise TypingError(f"{wanted}, or one of the same kind that can be cast to it, not {its}")


class _Call:
    """The builder of the code of one call."""

    def __init__(self, context: Any, builder: Any, interface: Interface) -> None:
        self._context = context
        self._builder = builder
        self._interface = interface
        # Copies of arguments, to be freed after the call.
        self._copies: list[tuple[Any, Any]] = []

    def emit(self, called: Any, values: Sequence[Any], locate: Locate) -> Any:
        """Emit the call and return its result."""
        builder = self._builder
        entry, constants = locate(self._context, builder)
        arrays, data, dims = self._arguments(called.args, values)
        self._check_lengths(dims)
        frame = Frame(self._context, builder, self._interface)
        function = builder.bitcast(entry, _ENTRY.as_pointer())
        code = builder.call(function, [data, dims, constants, frame.pointer])
        frame.release_arena()
        with builder.if_then(builder.icmp_signed("!=", code, I64(0)), likely=False):
            self._fail(frame, code)
        outputs = self._outputs(frame, arrays)
        self._free_copies()
        if self._interface.is_single:
            result = outputs[0]
        elif outputs:
            result = self._context.make_tuple(builder, called.return_type, outputs)
        else:
            result = self._context.get_dummy_value()
        return impl_ret_new_ref(self._context, builder, called.return_type, result)

    def _arguments(
        self, kinds: Sequence[Any], values: Sequence[Any]
    ) -> tuple[list[tuple[Any, Any]], Any, Any]:
        """Emit the stores that put the arguments into tables."""
        builder, inputs = self._builder, self._interface.inputs
        n_lengths = sum(len(given.lengths) for given in inputs)
        data = cgutils.alloca_once(builder, POINTER, size=max(len(inputs), 1))
        dims = cgutils.alloca_once(builder, I64, size=max(n_lengths, 1))
        arrays, axis = [], 0
        for position, given in enumerate(inputs):
            kind, value = kinds[position], values[position]
            if isinstance(kind, types.Array):
                kind, value = self._plain(given, kind, value)
                array = self._context.make_array(kind)(self._context, builder, value)
                pointer = array.data
                for length in cgutils.unpack_tuple(builder, array.shape, kind.ndim):
                    builder.store(length, cgutils.gep_inbounds(builder, dims, axis))
                    axis += 1
            elif given.is_overwritten and not given.is_scalar:
                kind, value = self._array_of(given, kind, value)
                pointer = self._context.make_array(kind)(self._context, builder, value).data
            else:
                pointer = self._number(given, kind, value)
            place = cgutils.gep_inbounds(builder, data, position)
            builder.store(builder.bitcast(pointer, POINTER), place)
            arrays.append((kind, value))
        return arrays, data, dims

    def _number(self, given: Argument, kind: Any, value: Any) -> Any:
        """Emit a store of a number to memory, as an array without dimensions."""
        builder, context = self._builder, self._context
        element = from_dtype(np.dtype(given.dtype))
        place = cgutils.alloca_once(builder, context.get_data_type(element))
        context.pack_value(builder, element, context.cast(builder, value, kind, element), place)
        return place

    def _plain(self, given: Argument, kind: Any, value: Any) -> tuple[Any, Any]:
        """Return an array, or a copy of it if the machine code cannot use the array itself."""
        wanted = type_of(given.dtype, len(given.lengths), is_scalar=False)
        is_plain = kind.dtype == wanted.dtype and kind.layout == "C" and kind.aligned
        if is_plain and (kind.mutable or not given.is_overwritten):
            return kind, value
        element = wanted.dtype

        def copy(array: Any) -> Any:
            return array.copy().astype(element)

        def copy_alike(array: Any) -> Any:
            return array.copy()

        return self._copied(copy_alike if kind.dtype == element else copy, wanted, kind, value)

    def _array_of(self, given: Argument, kind: Any, value: Any) -> tuple[Any, Any]:
        """Return an array without dimensions that holds a number."""
        wanted = type_of(given.dtype, 0, is_scalar=False)
        element = wanted.dtype

        def array_of(number: Any) -> Any:
            array = np.empty((), element)
            array[()] = number
            return array

        return self._copied(array_of, wanted, kind, value)

    def _copied(self, copy: Any, wanted: Any, kind: Any, value: Any) -> tuple[Any, Any]:
        called = signature(wanted, kind)
        made = self._context.compile_internal(self._builder, copy, called, (value,))
        self._copies.append((wanted, made))
        return wanted, made

    def _check_lengths(self, dims: Any) -> None:
        """Emit the check of the inputs' lengths against the known ones."""
        axes = [
            (length, position, axis)
            for position, given in enumerate(self._interface.inputs)
            for axis, length in enumerate(given.lengths)
        ]
        if all(length < 0 for length, _, _ in axes):
            return
        builder = self._builder
        # Three rows: the known length of each axis, its input and its number.
        tables = [
            cgutils.global_constant(builder, f"native.{name}", constant_row(row))
            for name, row in zip(("known", "inputs", "axes"), zip(*axes, strict=True), strict=True)
        ]
        with cgutils.for_range(builder, I64(len(axes))) as loop:
            known = self._entry(tables[0], loop.index)
            found = builder.load(cgutils.gep_inbounds(builder, dims, loop.index))
            is_wrong = builder.and_(
                builder.icmp_signed(">=", known, I64(0)), builder.icmp_signed("!=", known, found)
            )
            with builder.if_then(is_wrong, likely=False):
                self._free_copies()
                whose = [self._entry(table, loop.index) for table in tables[1:]]
                message = "input {0}: axis {1} must have length {2}, not {3}"
                self._raise(ValueError, message, [*whose, known, found])

    def _entry(self, table: Any, index: Any) -> Any:
        return self._builder.load(cgutils.gep_inbounds(self._builder, table, 0, index))

    def _outputs(self, frame: Frame, arrays: Sequence[tuple[Any, Any]]) -> list[Any]:
        builder, context = self._builder, self._context
        made: list[Any] = []
        for output, about in enumerate(self._interface.outputs):
            kind = type_of(about.dtype, about.ndim, about.is_scalar)
            if about.kind == "buffer":
                made.append(self._fresh(frame, output, about, kind))
                continue
            value = made[about.number] if about.kind == "output" else arrays[about.number][1]
            context.nrt.incref(builder, kind, value)
            made.append(value)
        return made

    def _fresh(self, frame: Frame, output: int, about: Returned, kind: Any) -> Any:
        builder, context = self._builder, self._context
        data = frame.data(output)
        if about.is_scalar:
            place = builder.bitcast(data, context.get_data_type(kind).as_pointer())
            value = context.unpack_value(builder, kind, place)
            frame.release(frame.owner(output))
            return value
        lengths, itemsize = frame.lengths(output), np.dtype(about.dtype).itemsize
        strides: list[Any] = [I64(itemsize)] * min(about.ndim, 1)
        for length in reversed(lengths[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        array = context.make_array(kind)(context, builder)
        populate_array(
            array,
            data=builder.bitcast(data, array.data.type),
            shape=cgutils.pack_array(builder, lengths, ty=I64),
            strides=cgutils.pack_array(builder, strides, ty=I64),
            itemsize=I64(itemsize),
            meminfo=frame.owner(output),
        )
        return array._getvalue()  # noqa: SLF001 - there is no public way to return a struct

    def _free_copies(self) -> None:
        for kind, value in self._copies:
            self._context.nrt.decref(self._builder, kind, value)

    def _fail(self, frame: Frame, code: Any) -> None:
        """Emit the release of all outputs and copies, and the exception."""
        builder, failures = self._builder, self._interface.failures
        frame.release_outputs()
        self._free_copies()
        no_memory = builder.append_basic_block("no_memory")
        blocks = [builder.append_basic_block(f"failure{k}") for k in range(len(failures))]
        switch = builder.switch(code, no_memory)
        for number, block in enumerate(blocks, 1):
            switch.add_case(I64(number), block)
        for failure, block in zip(failures, blocks, strict=True):
            builder.position_at_end(block)
            self._raise(failure.exception, failure.message, frame.details())
        builder.position_at_end(no_memory)
        self._raise(MemoryError, "there is no memory", [])
        # Unreachable, but the builder needs a block for the code that follows.
        builder.position_at_end(builder.append_basic_block("unreachable"))
        builder.unreachable()

    def _raise(self, class_: type[BaseException], text: str, details: Sequence[Any]) -> None:
        convention, message = self._context.call_conv, message_of(text, len(details))
        if isinstance(message, str):
            convention.return_user_exc(self._builder, class_, (message,))
            return
        value = cgutils.pack_array(self._builder, details, ty=I64)
        convention.return_dynamic_user_exc(self._builder, class_, (value,), (message,))
