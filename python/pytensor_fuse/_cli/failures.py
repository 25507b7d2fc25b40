"""Failures of reports, each kind with its own exit code."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """The exit codes of the process."""

    SUCCESS = 0
    OURS = 1
    USAGE = 2
    NO_FILE = 3
    FILE_FAILS = 4
    NO_NAME = 5
    NOT_REPORTABLE = 6
    CANNOT_WRITE = 7
    CANNOT_REPORT = 8
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.SUCCESS: "success: the report is made",
    ExitCode.OURS: "a bug in pytensor_fuse; please report it",
    ExitCode.USAGE: "the command line is wrong",
    ExitCode.NO_FILE: "FILE.py cannot be read",
    ExitCode.FILE_FAILS: "FILE.py fails when it is imported, or NAME when it is called",
    ExitCode.NO_NAME: "there is no NAME in FILE.py",
    ExitCode.NOT_REPORTABLE: "NAME is not an object that can be reported on",
    ExitCode.CANNOT_WRITE: "an output file cannot be written",
    ExitCode.CANNOT_REPORT: (
        "no report can be made, because of impossible shapes or a model that does not compile"
    ),
    ExitCode.INTERRUPTED: "interrupted",
}


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
