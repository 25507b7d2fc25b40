"""Profiles of passes, as PyTensor accumulates them for a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph


class Clock:
    """The seconds spent on a profiled graph since the clock was made."""

    def __init__(self, fgraph: FunctionGraph) -> None:
        self._fgraph = fgraph
        if fgraph.profile:
            self._validate = fgraph.profile.validate_time
            self._callback = fgraph.execute_callbacks_time
            self._callbacks = fgraph.execute_callbacks_times.copy()

    def times(self) -> tuple[float | None, float | None, dict[Any, float]]:
        """Return seconds spent validating and in callbacks, in all and by feature, if known."""
        fgraph = self._fgraph
        if not fgraph.profile:
            return None, None, {}
        callbacks = {
            feature: seconds - self._callbacks.get(feature, 0)
            for feature, seconds in fgraph.execute_callbacks_times.items()
        }
        validate = fgraph.profile.validate_time - self._validate
        return validate, fgraph.execute_callbacks_time - self._callback, callbacks
