"""Recorders: owners of the frames of a trace, from its opening until it is read."""

from __future__ import annotations

import threading
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from pytensor_fuse._forks import hold_in_forks
from pytensor_fuse._reports.versions import versions
from pytensor_fuse._trace.frames import Frame, next_serial
from pytensor_fuse._trace.reading import record_of
from pytensor_fuse._trace.recording import Recording
from pytensor_fuse._trace.records import TracedCall, TracedPass

if TYPE_CHECKING:
    from collections.abc import Callable


class Recorder:
    """Collects the outermost frames of one trace, and makes records of them when it is read.

    Attributes
    ----------
    serial
        A number greater than the serials of the frames that began before.
    is_open
        Whether frames may still arrive.
    """

    def __init__(self, recorded: Recording | None = None) -> None:
        """Start recording, or hold a given complete recording."""
        self.serial = next_serial()
        self.is_open = recorded is None
        self._began = perf_counter()
        self._frames: list[Frame] = []
        self._recorded = recorded or Recording((), (), 0.0, versions())

    @property
    def seconds(self) -> float:
        """How long the recorder was open; 0 while it is."""
        return self._recorded.seconds

    @property
    def versions(self) -> dict[str, str]:
        """The recorded versions of PyTensor and of this package."""
        return self._recorded.versions

    def take(self, frame: Frame) -> None:
        """Add a finished frame."""
        if self.is_open:
            self._frames.append(frame)

    def close(self) -> None:
        """Accept no more frames, and stop the clock."""
        self.is_open = False
        self._recorded = replace(self._recorded, seconds=perf_counter() - self._began)

    def recording(self) -> Recording:
        """Return everything recorded so far.

        Records are made here, once, so that they do not slow down compilation.
        """
        if self.is_open:
            # A finished call may still link.
            return self._with_frames(list(self._frames))
        if self._frames:
            # Frames are dropped only after all records have been made.
            self._recorded = self._with_frames(self._frames)
            self._frames = []
        return self._recorded

    def _with_frames(self, frames: list[Frame]) -> Recording:
        records = [record_of(frame, self._began) for frame in frames]
        calls = tuple(each for each in records if isinstance(each, TracedCall))
        outside = tuple(each for each in records if isinstance(each, TracedPass))
        return replace(
            self._recorded,
            calls=(*self._recorded.calls, *calls),
            outside=(*self._recorded.outside, *outside),
        )


class OpenRecorders:
    """The open recorders of all threads.

    Attributes
    ----------
    lock
        Guards the list, and the instrumentation that depends on whether it is empty.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._recorders: tuple[Recorder, ...] = ()
        # The greatest serial, a quick test that rejects most frames.
        self._latest = -1

    def __bool__(self) -> bool:
        return bool(self._recorders)

    def __reduce__(self) -> str:
        # Pickles by value of wrapped methods refer to this by name.
        return "open_recorders"

    def add(self, recorder: Recorder, before_first: Callable[[], None]) -> None:
        """Give a recorder the outermost frames that begin from now on."""
        with self.lock:
            if not self._recorders:
                before_first()
            self._keep((*self._recorders, recorder))

    def remove(self, recorder: Recorder, after_last: Callable[[], None]) -> None:
        """Give a recorder no more frames."""
        with self.lock:
            self._keep(tuple(other for other in self._recorders if other is not recorder))
            if not self._recorders:
                after_last()

    def _keep(self, recorders: tuple[Recorder, ...]) -> None:
        self._recorders = recorders
        self._latest = max((each.serial for each in recorders), default=-1)

    def take(self, frame: Frame) -> None:
        """Give a finished frame to the recorders in whose traces it is outermost.

        A frame belongs to the traces that were open for its whole duration.
        """
        parent = frame.parent
        if parent is None or parent.serial < self._latest:
            for recorder in self._recorders:
                if recorder.serial < frame.serial and (
                    parent is None or parent.serial < recorder.serial
                ):
                    recorder.take(frame)


open_recorders = OpenRecorders()
hold_in_forks(open_recorders.lock)
