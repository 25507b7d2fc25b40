"""What DebugMode logs of this package's ops, which it cannot know to be right.

DebugMode takes an output that is declared to be in place of an input, and is not the same object,
for a mistake in the declaration, and says "Optimization Warning: ... marked as destroyed was not
changed". `WriteJoin` declares that on purpose: what is read after it must not be what it read.
PyTensor has the same case in an op of its own, `OutputGuard`, of which DebugMode says nothing.
"""

from __future__ import annotations

import logging

_LOGGER = "pytensor.compile.debugmode"
_STARTS = "Optimization Warning: input idx "
_SAYS = " marked as destroyed was not changed for node 'WriteJoin{"


class _SilentOnJoins(logging.Filter):
    """Lets everything through but that warning about a `WriteJoin`."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        return not (message.startswith(_STARTS) and _SAYS in message)


class FilteredLog:
    """The patch that adds the filter to DebugMode's logger."""

    def __init__(self) -> None:
        self._filter = _SilentOnJoins()
        # By name: the module of DebugMode need not be loaded for it.
        self._logger = logging.getLogger(_LOGGER)

    def prepare(self) -> None:
        """Do nothing: a logger of any name is there."""

    def apply(self) -> None:
        """Add the filter, unless it is there."""
        self._logger.addFilter(self._filter)

    def undo(self) -> None:
        """Remove the filter, if it is there."""
        self._logger.removeFilter(self._filter)

    def holds(self) -> bool:
        """Whether the filter is there."""
        return self._filter in self._logger.filters
