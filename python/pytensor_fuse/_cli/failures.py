"""Failures of reports, each kind with its own exit code."""

from __future__ import annotations

import enum


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
        "no report can be made, because of impossible shapes or a model that does not compile",
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
