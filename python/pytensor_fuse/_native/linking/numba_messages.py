"""Messages of exceptions with numbers, which become text only if somebody reads them."""

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
        The message, with ``{0}``, ``{1}`` ... for numbers.
    n_details
        How many numbers there are.
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
    """Return the message as Python's text."""
    numbers: list[Any] = []

    def place(number: int) -> str:
        numbers.append(c.builder.extract_value(value, number))
        return "%lld"

    parts = filled(kind.text.replace("%", "%%"), kind.n_details, place)
    told = c.context.insert_const_string(c.builder.module, parts)
    form = ir.FunctionType(c.pyapi.pyobj, [told.type], var_arg=True)
    function = cgutils.get_or_insert_function(c.builder.module, form, "PyUnicode_FromFormat")
    return c.builder.call(function, [told, *numbers])


def message_of(text: str, n_details: int) -> Any:
    """Return Numba's type of a message, or the text itself if there are no numbers in it."""
    numbers: list[int] = []

    def place(number: int) -> str:
        numbers.append(number)
        return ""

    told = filled(text, n_details, place)
    return _Message(text, n_details) if numbers else told
