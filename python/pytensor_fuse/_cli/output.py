"""Outputs of reports: standard output, reserved for the report, and files."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pytensor_fuse._cli.failures import ExitCode, ReportError
from pytensor_fuse._cli.messages import step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class OutputFiles:
    """Output files, relative to the directory where the process was started."""

    def __init__(self, *paths: str | None) -> None:
        """Reject paths that cannot be written before any work is done."""
        # The file under report may change the working directory.
        self._start = os.getcwd()
        for path in paths:
            if path is not None:
                with self._writing(path):
                    self._check(path)

    def write(self, path: str | None, write: Callable[[str], object]) -> None:
        """Write a file if its path is not None."""
        if path is not None:
            with self._writing(path), step(f"writing {path}"):
                write(os.path.join(self._start, path))

    def _check(self, path: str) -> None:
        place = Path(path)
        if not path:
            raise OSError("it has no name")
        if place.is_dir():
            raise OSError("it is a directory")
        if not place.parent.is_dir():
            raise OSError(f"there is no {place.parent}")

    @contextlib.contextmanager
    def _writing(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            raise ReportError(
                ExitCode.CANNOT_WRITE, f"{path or repr(path)} cannot be written: {why}"
            ) from error


def take_output() -> IO[str]:
    """Return standard output, and redirect all further output to stderr.

    That includes output of subprocesses and libraries that do not use ``sys.stdout``.
    """
    if sys.stdout is None:
        raise ReportError(ExitCode.CANNOT_WRITE, "there is no standard output")
    sys.stdout.flush()
    # Names in a graph may contain characters that a terminal cannot show.
    output = os.fdopen(
        os.dup(sys.stdout.fileno()), "w", encoding=sys.stdout.encoding, errors="backslashreplace"
    )
    if sys.stderr is None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    else:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


def print_report(output: IO[str], text: str) -> None:
    """Write a report to standard output, and close that."""
    try:
        with output:
            output.write(f"{text}\n")
    except BrokenPipeError:
        # The reader has closed the pipe early, for example `head`.
        pass
    except OSError as error:
        why = f"the report cannot be written: {error.strerror}"
        raise ReportError(ExitCode.CANNOT_WRITE, why) from error
