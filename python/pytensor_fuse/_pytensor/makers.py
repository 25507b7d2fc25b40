"""The maker whose function `pytensor.function` is about to make, before it is called."""

from __future__ import annotations

import sys
from typing import Any, Final

import pytensor.compile.maker as maker
from pytensor.compile.mode import get_mode

from pytensor_fuse._pytensor.ground import REPLACED_CODES

_now: Final = vars(maker)["function"].__code__
_CODE: Final = REPLACED_CODES.get(_now, _now)


def maker_of_caller() -> Any:
    """Return the class of the maker that the caller's caller, `pytensor.function`, calls next.

    None if somebody else is the caller's caller, or if there is no such mode.
    """
    frame = sys._getframe(2)
    if REPLACED_CODES.get(frame.f_code, frame.f_code) is not _CODE:
        return None
    try:
        return get_mode(frame.f_locals["mode"]).function_maker
    except Exception:  # PyTensor will say so itself.
        return None
