"""Subjects of reports: a named object of a file, or the result of calling it."""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import os
import sys
import traceback
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytensor_fuse._cli.failures import ExitCode, ReportError, one_line
from pytensor_fuse._cli.messages import step
from pytensor_fuse._cli.models import is_model, plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


def load(target: tuple[str, str]) -> Any:
    """Return the function, graph or model that a file defines under a name."""
    path, name = target
    with step(f"importing {path}"):
        module = _import(path)
    value, verb = plain(_find(module, path, name)), "is"
    if callable(value) and not isinstance(value, type) and not _is_reportable(value):
        with step(f"calling {name}"), _blaming(path, f"{name} in {path} fails"):
            value, verb = plain(value()), "returns"
    if not _is_reportable(value):
        raise ReportError(
            ExitCode.NOT_REPORTABLE,
            f"{name} in {path} {verb} {_article(value)}; {_what_is_reported(module)}",
        )
    return value


def _import(path: str) -> ModuleType:
    try:
        with open(path, "rb") as file:
            file.read(1)
    except OSError as error:
        raise ReportError(ExitCode.NO_FILE, f"{path} cannot be read: {error.strerror}") from error
    name = Path(path).stem
    if name in sys.modules:
        # The module must not shadow one that others import.
        name = f"{name} in {path}"
    loader = SourceFileLoader(name, os.path.abspath(path))
    spec = importlib.util.spec_from_file_location(name, loader.path, loader=loader)
    assert spec is not None, "there is a loader"
    module = importlib.util.module_from_spec(spec)
    # Modules beside the file can be imported, as for a script.
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    sys.modules[spec.name] = module
    with _blaming(path, f"{path} fails"):
        loader.exec_module(module)
    return module


@contextlib.contextmanager
def _blaming(
    path: str, what: str, *, but: type[BaseException] = KeyboardInterrupt
) -> Iterator[None]:
    """Turn an exception of the user's code into one line, with the line number in their file."""
    try:
        yield
    except (KeyboardInterrupt, but):
        raise
    except BaseException as error:
        where = _line_of(error, path)
        at = "" if where is None else f" on line {where}"
        raise ReportError(ExitCode.FILE_FAILS, f"{what}{at}: {one_line(error)}") from error


def _line_of(error: BaseException, path: str) -> int | None:
    """Return the last line of a file in the traceback of an error."""
    full_path = os.path.abspath(path)
    if isinstance(error, SyntaxError) and error.filename == full_path:
        return error.lineno
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == full_path
    ]
    return lines[-1] if lines else None


def _find(module: ModuleType, path: str, name: str) -> Any:
    value: Any = module
    for part in name.split("."):
        try:
            with _blaming(path, f"{name} in {path} fails", but=AttributeError):
                value = getattr(value, part)
        except AttributeError:
            names = [known for known in dir(value) if not known.startswith("__")]
            close = difflib.get_close_matches(part, names)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            raise ReportError(ExitCode.NO_NAME, f"there is no {name} in {path}{hint}") from None
    return value


def _is_reportable(value: object) -> bool:
    from pytensor.compile.executor import Function
    from pytensor.graph.fg import FunctionGraph

    return isinstance(value, Function | FunctionGraph) or is_model(value)


def _what_is_reported(module: ModuleType) -> str:
    there = [name for name, value in vars(module).items() if _is_reportable(value)]
    wanted = "give a compiled function, a FunctionGraph, a PyMC model or what returns one"
    return f"{wanted}, such as {' or '.join(there[:3])}" if there else wanted


def _article(value: object) -> str:
    name = f"class {value.__name__}" if isinstance(value, type) else type(value).__name__
    return f"an {name}" if name[0] in "AEIOUaeiou" else f"a {name}"
