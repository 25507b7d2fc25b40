"""Tracing a program from its start, and writing the trace at its end."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytensor_fuse._cli.messages import fail, say, write_error
from pytensor_fuse._cli.program import has_begun
from pytensor_fuse._imports import after_import
from pytensor_fuse._reports.files import write

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._trace.trace import Trace

# The options that write a file, and the functions that write it.
_WRITERS: dict[str, Callable[[Trace, str], object]] = {
    "--trace-html": lambda trace, path: trace.to_html(path),
    "--trace-json": lambda trace, path: write(path, json.dumps(trace.to_dict(), allow_nan=False)),
    "--trace-speedscope": lambda trace, path: trace.to_speedscope(path),
    "--trace-chrome": lambda trace, path: trace.to_chrome_trace(path),
}


@dataclass
class Wanted:
    """The requested outputs of a trace: text, and the paths of files by their options."""

    text: bool = False
    files: dict[str, str] = field(default_factory=dict)


def take_options(arguments: list[str]) -> tuple[Wanted | None, list[str]]:
    """Split the options for a trace off the front of ``arguments``."""
    wanted = Wanted()
    while arguments:
        option, is_joined, value = arguments[0].partition("=")
        if option == "--trace" and not is_joined:
            wanted.text = True
            arguments = arguments[1:]
            continue
        if option not in _WRITERS:
            break
        if not is_joined:
            if len(arguments) < 2:
                fail(f"{option} needs the name of a file", code=2)
            value = arguments[1]
        _require_place_for(value, option)
        wanted.files[option] = os.path.abspath(value)
        arguments = arguments[1:] if is_joined else arguments[2:]
    return (wanted if wanted != Wanted() else None), arguments


def _require_place_for(path: str, option: str) -> None:
    """Exit now if a file cannot be written, instead of after the program has run."""
    directory = os.path.dirname(os.path.abspath(path))
    if not path or os.path.isdir(path):
        fail(f"{option}: {path!r} is not the name of a file", code=2)
    if not os.path.isdir(directory):
        fail(f"{option}: can't write {path!r}: {directory} is no directory", code=2)
    if not os.access(directory, os.W_OK):
        fail(f"{option}: can't write {path!r}: {directory} is read-only", code=2)


def trace_later(wanted: Wanted) -> None:
    """Trace from the program's import of PyTensor, and report when the process ends.

    An exit function runs however the program ends, after its traceback is shown and its threads
    have finished, and does not change the exit code. It runs last, so that the trace includes
    compilations in the program's own exit functions.
    """
    opened = contextlib.ExitStack()
    traces: list[Trace] = []
    process = os.getpid()

    def start() -> None:
        # When an interrupted program exits, importing a module that executes source text, as
        # definitions of dataclasses do, would make Python forget the interrupt.
        from pytensor_fuse._trace.trace import trace  # Loaded early.

        traces.append(opened.enter_context(trace()))

    def report() -> None:
        # A forked child runs the exit functions of its parent, too.
        if os.getpid() != process or not has_begun():
            return
        opened.close()
        if not traces:
            say("nothing to trace: the program did not import PyTensor")
            return
        _report(traces[0], wanted)

    atexit.register(report)
    # That module is imported right after PyTensor: see `pytensor_fuse._startup.waiting`.
    after_import("pytensor_fuse._activation.switch", start)


def _report(trace: Trace, wanted: Wanted) -> None:
    try:
        for option, write_file in _WRITERS.items():
            if option in wanted.files:
                write_file(trace, wanted.files[option])
    except OSError as error:
        say(f"can't write the trace: {error}")
    if wanted.text:
        write_error(f"{trace}\n")
