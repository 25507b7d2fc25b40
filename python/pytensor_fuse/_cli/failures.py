"""Failures of reports, each kind with its own exit code."""

from __future__ import annotations

import contextlib
import enum
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from pytensor_fuse._cli.messages import fail

if TYPE_CHECKING:
    from collections.abc import Iterator


class ExitCode(enum.IntEnum):
    """The exit codes of the process, with their meanings."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        made = int.__new__(cls, code)
        made._value_ = code
        made.meaning = meaning
        return made

    SUCCESS = 0, "success: the report is made"
    OURS = 1, "a bug in pytensor_fuse; please report it"
    USAGE = 2, "the command line is wrong"
    NO_FILE = 3, "FILE.py cannot be read"
    FILE_FAILS = 4, "FILE.py fails when it is imported, or NAME when it is called"
    NO_NAME = 5, "there is no NAME in FILE.py"
    NOT_REPORTABLE = 6, "NAME is not an object that can be reported on"
    CANNOT_WRITE = 7, "an output file cannot be written"
    CANNOT_REPORT = (
        8,
        "no report can be made, because of impossible shapes, a model that does not compile, or a "
        "PyTensor that cannot be imported",
    )
    INTERRUPTED = 130, "interrupted"


class ReportError(Exception):
    """A message to the user, with the exit code."""

    def __init__(self, code: ExitCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def one_line(error: BaseException) -> str:
    """Return the class of an error and the first line of its message."""
    name = type(error).__name__
    try:
        lines = [line for line in str(error).splitlines() if line.strip()]
    except Exception:
        lines = []
    return f"{name}: {lines[0].strip()}" if lines else name


def import_pytensor() -> None:
    """Import PyTensor, or raise a `ReportError`."""
    try:
        import pytensor  # noqa: F401
    # PyTensor raises a ValueError if one of its flags is wrong, and whatever its imports raise.
    except Exception as error:
        raise ReportError(
            ExitCode.CANNOT_REPORT, f"PyTensor cannot be imported: {one_line(error)}"
        ) from error


@contextlib.contextmanager
def failures_end_process() -> Iterator[None]:
    """End the process with one line and an exit code if the command in the block fails."""
    try:
        yield
    except ReportError as failure:
        fail(str(failure), failure.code)
    except KeyboardInterrupt:
        fail("interrupted", ExitCode.INTERRUPTED)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        fail(
            f"{one_line(error)} ({Path(where.filename).name}, line {where.lineno}); "
            "this is a bug in pytensor_fuse, please report it",
            ExitCode.OURS,
        )
