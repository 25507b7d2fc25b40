"""What a check that fails raises."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.program.model import Failure

_PLACE: Final = re.compile(r"\{(\d)\}")


def raised_by(failure: Failure, details: Sequence[int]) -> BaseException:
    """Return the exception of a failure.

    Parameters
    ----------
    failure
        Its message has ``{0}``, ``{1}`` ... for details; other braces are themselves.
    details
        Those of the check.
    """

    def detail(place: re.Match[str]) -> str:
        number = int(place[1])
        return str(details[number]) if number < len(details) else place[0]

    return failure.exception(_PLACE.sub(detail, failure.message))
