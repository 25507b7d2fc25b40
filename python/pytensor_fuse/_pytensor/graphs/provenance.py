"""Provenance: the line of the user's program that made a variable, or requested a function.

A line is the user's if it is outside library code: the standard library, installed packages,
PyTensor and this package, wherever these are installed.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import FrameType

    from pytensor.graph.basic import Variable


def _slashed(file: str) -> str:
    return file.replace("\\", "/")


def _folders(*paths: str) -> tuple[str, ...]:
    return tuple(_slashed(os.path.join(path, "")) for path in paths)


# Prefixes of file names: first the packages that run most often, then Python's own files.
_OURS = ("<frozen ", *_folders(os.path.dirname(pytensor.__file__), str(Path(__file__).parents[2])))
_STANDARD_LIBRARY = _folders(sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))


@dataclass(frozen=True)
class SourceLine:
    """A line of source text.

    Attributes
    ----------
    file
        The path of its file.
    line
        Its number, from 1.
    code
        Its text; empty if that is not known.
    """

    file: str
    line: int
    code: str = ""


@functools.cache
def is_library(file: str) -> bool:
    """Whether a file is part of the standard library, an installed package, PyTensor or ours."""
    file = _slashed(file)
    if file.startswith((*_OURS, *_STANDARD_LIBRARY)):
        return True
    return not {"site-packages", "dist-packages"}.isdisjoint(PurePosixPath(file).parts)


def line_that_made(variables: Iterable[Variable[Any, Any]]) -> SourceLine | None:
    """Return the innermost line of the user that PyTensor noted, else the innermost of all.

    PyTensor notes only a few calls; if a library made the variable, all may be library calls.
    """
    innermost = None
    for variable in variables:
        for stack in _rows(getattr(variable.tag, "trace", None)):
            for frame in reversed(_rows(stack)):
                if len(_rows(frame)) != 4:
                    continue
                if not is_library(str(frame[0])):
                    return _noted_line(frame)
                innermost = innermost or frame
    return innermost and _noted_line(innermost)


def _noted_line(frame: Sequence[Any]) -> SourceLine:
    file, line, _, code = frame
    return SourceLine(str(file), line if isinstance(line, int) else 0, str(code or ""))


def _rows(value: object) -> Sequence[Any]:
    """Return the value if it is a list or tuple, else nothing: tags may contain anything."""
    return value if isinstance(value, (list, tuple)) else ()


def calling_line() -> SourceLine | None:
    """Return the innermost user line that is running in this thread.

    If only libraries run, this is the innermost line outside PyTensor and this package; None if
    there is none.
    """
    outside = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_library(file):
            return SourceLine(file, frame.f_lineno)
        if outside is None and not _slashed(file).startswith(_OURS):
            outside = SourceLine(file, frame.f_lineno)
        frame = frame.f_back
    return outside
