"""A filter of DebugMode's log for warnings about this package's ops, which are correct.

DebugMode considers an output that is declared to be in place of an input, and is not the same
object, a mistake in the declaration, and logs "Optimization Warning: ... marked as destroyed was
not changed". `WriteJoin` declares this on purpose, so that no node reads its input afterwards.
PyTensor has such an op, too, `OutputGuard`, for which DebugMode makes an exception.
"""

from __future__ import annotations

import logging

_LOGGER = "pytensor.compile.debugmode"
_STARTS = "Optimization Warning: input idx "
_SAYS = " marked as destroyed was not changed for node 'WriteJoin{"


class _SilentOnJoins(logging.Filter):
    """Drops this warning about a `WriteJoin`, and passes everything else."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        return not (message.startswith(_STARTS) and _SAYS in message)


class FilteredLog:
    """The patch that adds the filter to DebugMode's logger."""

    def __init__(self) -> None:
        self._filter = _SilentOnJoins()
        # A logger can be obtained by name before the module of DebugMode is loaded.
        self._logger = logging.getLogger(_LOGGER)

    def prepare(self) -> None:
        """Do nothing: a logger exists for any name."""

    def apply(self) -> None:
        """Add the filter, unless it is present."""
        self._logger.addFilter(self._filter)

    def undo(self) -> None:
        """Remove the filter, if it is present."""
        self._logger.removeFilter(self._filter)

    def holds(self) -> bool:
        """Whether the filter is present."""
        return self._filter in self._logger.filters
