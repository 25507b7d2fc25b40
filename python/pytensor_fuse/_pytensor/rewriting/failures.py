"""Failing rewriters, which PyTensor logs and skips."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytensor.configdefaults import config
from pytensor.graph.rewriting import basic

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Notes(logging.Filter):
    """Notes the log messages of one thread, and passes everything."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []
        self._thread = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR and threading.get_ident() == self._thread:
            self.messages.append(record.getMessage())
        return True


def failures_are_told() -> bool:
    """Whether PyTensor logs failing rewriters; the user can switch this off."""
    logger: logging.Logger = basic._logger
    return config.on_opt_error != "ignore" and logger.isEnabledFor(logging.ERROR)


@contextmanager
def noted_failures() -> Iterator[list[str]]:
    """Note in a list what PyTensor logs about failing rewriters of this thread, in a block.

    Nothing is noted if PyTensor logs nothing (see `failures_are_told`).
    """
    logger: logging.Logger = basic._logger
    notes = _Notes()
    logger.addFilter(notes)
    try:
        yield notes.messages
    finally:
        logger.removeFilter(notes)
