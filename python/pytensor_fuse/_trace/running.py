"""The innermost frame of each thread while a trace is open."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._trace.frames import Frame


class _Running(threading.local):
    """The state of a thread.

    Attributes
    ----------
    frame
        The innermost open frame.
    preparing
        The graph that is being prepared for a pass, and since when.
    """

    frame: Frame | None = None
    preparing: tuple[FunctionGraph, float] | None = None

    def __reduce__(self) -> str:
        # Pickles by value of wrapped methods refer to this by name.
        return "running"


running = _Running()
