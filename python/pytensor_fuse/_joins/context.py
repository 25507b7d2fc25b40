"""What the passes over joins tell each other about a graph that is being compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

from pytensor_fuse._joins.thresholds import DEFAULT_THRESHOLDS, Thresholds
from pytensor_fuse._pytensor.targets import Target

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph


class JoinContext:
    """One object that all registered passes over joins share.

    Attributes
    ----------
    thresholds
        What `join_buffer_elimination` decides by.
    """

    def __init__(self, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> None:
        self.thresholds = thresholds
        self._targets: WeakKeyDictionary[FunctionGraph, Target] = WeakKeyDictionary()
        self._reusing: WeakSet[FunctionGraph] = WeakSet()

    def note_target(self, fgraph: FunctionGraph, target: Target) -> None:
        """Note which target ``fgraph`` is being compiled for."""
        self._targets[fgraph] = target

    def take_target(self, fgraph: FunctionGraph) -> Target:
        """Return the target that was noted, and forget it; Python if there was none."""
        return self._targets.pop(fgraph, Target.PYTHON)

    def note_reuse(self, fgraph: FunctionGraph) -> None:
        """Note that joins of ``fgraph`` may keep their memory from call to call."""
        self._reusing.add(fgraph)

    def take_reuse(self, fgraph: FunctionGraph) -> bool:
        """Return whether that was noted, and forget it."""
        reuse = fgraph in self._reusing
        self._reusing.discard(fgraph)
        return reuse

    def __reduce__(self) -> tuple[type[JoinContext], tuple[Thresholds]]:
        # Copies, also in other processes, are for other graphs.
        return JoinContext, (self.thresholds,)
