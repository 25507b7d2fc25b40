"""Exceptions of failed checks, and their message templates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.program.model import Failure

_PLACE: Final = re.compile(r"\{(\d)\}")
_TOLD: Final = re.compile(r"\{\{(\d)\}\}|\{(\d)\}")


def literal(text: str) -> str:
    """Return a message template for a literal text: each ``{0}`` is escaped."""
    return _PLACE.sub(r"{{\1}}", text)


def filled(message: str, n_details: int, detail: Callable[[int], str]) -> str:
    """Return a message with its placeholders filled.

    Parameters
    ----------
    message
        The template: ``{0}``, ``{1}`` ... stand for details, and ``{{0}}`` for ``{0}`` itself.
    n_details
        The number of details; placeholders beyond them are left alone.
    detail
        Returns the text of the detail with a given number.
    """

    def told(place: re.Match[str]) -> str:
        itself, number = place.groups()
        if number is None:
            return f"{{{itself}}}"
        return detail(int(number)) if int(number) < n_details else place[0]

    return _TOLD.sub(told, message)


def unfilled(message: str, n_details: int) -> list[str]:
    """Return the placeholders of a message that have no detail."""
    return [
        place[0]
        for place in _TOLD.finditer(message)
        if place[2] is not None and int(place[2]) >= n_details
    ]


def raised_by(failure: Failure, details: Sequence[int]) -> BaseException:
    """Return the exception of a failure, with the details of the check in its message."""
    text = filled(failure.message, len(details), lambda number: str(details[number]))
    return failure.exception(text)
