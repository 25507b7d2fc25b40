"""Makers of functions: the one that `pytensor.function` is about to call, and makers of copies."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import pytensor.compile.maker as maker
from pytensor.compile.mode import get_mode

from pytensor_fuse._pytensor.compat.checks import REPLACED_CODES

if TYPE_CHECKING:
    from pytensor.compile.executor import Function

_now: Final = vars(maker)["function"].__code__
_CODE: Final = REPLACED_CODES.get(_now, _now)


def maker_of_caller() -> Any:
    """Return the class of the maker that the caller's caller, `pytensor.function`, calls next.

    None if the caller's caller is another function, or if there is no such mode.
    """
    frame = sys._getframe(2)
    if REPLACED_CODES.get(frame.f_code, frame.f_code) is not _CODE:
        return None
    try:
        return get_mode(frame.f_locals["mode"]).function_maker
    except Exception:  # PyTensor will report the error itself.
        return None


def is_copy(function: Function) -> bool:
    """Whether a function with inputs was made by `Function.copy`.

    A maker rewrites the graph of the inputs that it receives; the maker of a copy has its own graph
    and the inputs of the original function.
    """
    maker = function.maker
    return any(
        spec.variable is not variable
        for spec, variable in zip(maker.inputs, maker.fgraph.inputs, strict=False)
    )
