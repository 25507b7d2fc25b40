"""Where a report goes: the output stream, which nothing else gets at, and files."""

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
    """Output files, as they are called where the command was given."""

    def __init__(self, *paths: str | None) -> None:
        """Refuse, before the work, what is sure not to be written after it."""
        # The file that is reported on may change the directory.
        self._start = os.getcwd()
        for path in paths:
            if path is not None:
                with self._writing(path):
                    self._check(path)

    def write(self, path: str | None, write: Callable[[str], object]) -> None:
        """Write a file, if it is asked for."""
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
    """Return the output stream, and let all that is printed from now on go to the error stream.

    That includes what programs and libraries write that know nothing of ``sys.stdout``.
    """
    if sys.stdout is None:
        raise ReportError(ExitCode.CANNOT_WRITE, "there is no standard output")
    sys.stdout.flush()
    # Names in a graph may hold what a terminal cannot show.
    output = os.fdopen(
        os.dup(sys.stdout.fileno()), "w", encoding=sys.stdout.encoding, errors="backslashreplace"
    )
    if sys.stderr is None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    else:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


def print_report(output: IO[str], text: str) -> None:
    """Write a report to the output stream and close it."""
    try:
        with output:
            output.write(f"{text}\n")
    except BrokenPipeError:
        # Who read it has seen enough.
        pass
    except OSError as error:
        why = f"the report cannot be written: {error.strerror}"
        raise ReportError(ExitCode.CANNOT_WRITE, why) from error
