"""What PyTensor is doing in each thread while anything is traced."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._trace.frames import Frame


class _Running(threading.local):
    """What runs in a thread.

    Attributes
    ----------
    frame
        The innermost frame that is open.
    preparing
        The graph for which a pass is about to run, and since when that is being prepared.
    """

    frame: Frame | None = None
    preparing: tuple[FunctionGraph, float] | None = None

    def __reduce__(self) -> str:
        # Methods that are pickled by value take this along: by name.
        return "running"


running = _Running()
