"""Exception messages with numbers, which are formatted only on demand."""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import box, models, register_model

from pytensor_fuse._native.program.failures import filled

_I64: Final = ir.IntType(64)


class _Message(types.Type):
    """The type of the numbers of a message.

    Parameters
    ----------
    text
        The message, with placeholders ``{0}``, ``{1}`` ... for numbers.
    n_details
        The number of available numbers.
    """

    def __init__(self, text: str, n_details: int) -> None:
        self.text = text
        self.n_details = n_details
        super().__init__(name=f"Message({text!r}, {n_details})")


@register_model(_Message)
class _MessageModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        elements = ir.ArrayType(_I64, kind.n_details)
        super().__init__(manager, kind, elements)  # type: ignore[no-untyped-call]


@box(_Message)  # type: ignore[untyped-decorator]
def _boxed(kind: Any, value: Any, c: Any) -> Any:
    """Return the message as a Python string; None if memory runs out."""
    numbers: list[Any] = []

    def place(number: int) -> str:
        numbers.append(c.builder.extract_value(value, number))
        return "%d"

    # Python formats the text: C formats would have to be ASCII, and end at a zero byte.
    parts = filled(kind.text.replace("%", "%%"), kind.n_details, place)
    template = c.pyapi.unserialize(c.pyapi.serialize_object(parts))
    form = c.context.insert_const_string(c.builder.module, f"({'L' * len(numbers)})")
    args = _called(c, "Py_BuildValue", [form, *numbers], n_named=1)
    # Numba puts the result into a tuple unchecked, so it must not be a null pointer.
    result = cgutils.alloca_once_value(c.builder, c.pyapi.borrow_none())
    is_there = c.builder.and_(
        cgutils.is_not_null(c.builder, template), cgutils.is_not_null(c.builder, args)
    )
    with c.builder.if_then(is_there, likely=True):
        text = _called(c, "PyUnicode_Format", [template, args], n_named=2)
        with c.builder.if_then(cgutils.is_not_null(c.builder, text), likely=True):
            c.builder.store(text, result)
    c.pyapi.decref(template)
    c.pyapi.decref(args)
    told = c.builder.load(result)
    with c.builder.if_then(c.builder.icmp_unsigned("==", told, c.pyapi.borrow_none())):
        c.pyapi.err_clear()
        c.pyapi.incref(told)
    return told


def _called(c: Any, name: str, args: list[Any], *, n_named: int) -> Any:
    """Emit a call of a C function of Python, which may take more arguments than the named ones."""
    named = [arg.type for arg in args[:n_named]]
    form = ir.FunctionType(c.pyapi.pyobj, named, var_arg=len(args) > n_named)
    function = cgutils.get_or_insert_function(c.builder.module, form, name)
    return c.builder.call(function, args)


def message_of(text: str, n_details: int) -> Any:
    """Return Numba's type of a message, or the text itself if it contains no numbers."""
    numbers: list[int] = []

    def place(number: int) -> str:
        numbers.append(number)
        return ""

    told = filled(text, n_details, place)
    return _Message(text, n_details) if numbers else told
