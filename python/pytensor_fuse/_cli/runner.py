"""``python -m pytensor_fuse``: run a program as Python itself would, with the pass on.

By the time this runs, the package has been imported, which is all that switches the pass on: see
`pytensor_fuse._startup.waiting`. What is left is to make the program's ``__main__`` what it
would have been. In particular `multiprocessing` finds the program, by its ``__file__`` or
``__spec__``, when it prepares a spawned worker.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import importlib.util
import io
import json
import os
import sys
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, NoReturn

from pytensor_fuse._imports import after_import
from pytensor_fuse._startup import waiting
from pytensor_fuse._startup.features import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    from pytensor_fuse import Trace

USAGE = f"""\
usage: python -m pytensor_fuse [option ...] script.py [argument ...]
       python -m pytensor_fuse [option ...] -m module [argument ...]
       python -m pytensor_fuse audit FILE.py:NAME [option ...]
       python -m pytensor_fuse plan FILE.py:NAME [option ...]

Run a Python program, unchanged, with the fusion pass of pytensor_fuse on.

  -m module          run a module, as python -m does
  --trace            at the end, say on stderr which rewrites ran for each
                     pytensor.function, what they did and how long they took
  --trace-html FILE  write that as a page with a flame chart
  --trace-json FILE  write that as JSON, for pytensor_fuse.Trace.from_dict
  audit              say what a compiled function or a graph costs;
                     see audit --help
  plan               show what of a graph would be fused, and why not more;
                     see plan --help
  -h, --help         show this text

The exit code is that of the program, even if the trace cannot be written when
it ends; before it starts, 2 if the command line is wrong or a file cannot be
read or written, and 1 if there is no such module.

If there is a script called audit or plan in the current directory, that is run.

{VARIABLE}=0 in the environment keeps the pass off here, too: the same command line then
runs the program with PyTensor's own fusion.
"""

# Whether the program has been found, and runs or has run.
_began = False


def main(arguments: list[str]) -> None:
    """Run the program that ``arguments`` names, with the arguments that follow it."""
    wanted, arguments = _tracing_options(arguments)
    if wanted is not None and arguments[:1] not in (["-h"], ["--help"], []):
        _trace_later(wanted)
    match arguments:
        case []:
            _fail(f"no program to run\n\n{USAGE.rstrip()}", code=2)
        case ["-h" | "--help", *_]:
            sys.stdout.write(USAGE)
        case ["-m"]:
            _fail("-m needs the name of a module", code=2)
        case ["-m", name, *rest]:
            _say_if_off()
            _run_module(name, rest)
        case [option, *_] if option.startswith("-"):
            _fail(f"unknown option {option}; see python -m pytensor_fuse --help", code=2)
        case ["audit" | "plan" as command, *rest] if not os.path.isfile(command):
            _say_if_off()
            _run_tool(command, rest)
        case [path, *rest]:
            _say_if_off()
            _run_script(path, rest)


@dataclass
class _Tracing:
    """What is to be made of the rewriting of a program."""

    text: bool = False
    html: str | None = None
    json: str | None = None


def _tracing_options(arguments: list[str]) -> tuple[_Tracing | None, list[str]]:
    """Take the options that ask for a trace off the front of ``arguments``."""
    wanted = _Tracing()
    while arguments:
        option, is_joined, value = arguments[0].partition("=")
        if option == "--trace" and not is_joined:
            wanted.text = True
            arguments = arguments[1:]
            continue
        if option not in ("--trace-html", "--trace-json"):
            break
        if not is_joined:
            if len(arguments) < 2:
                _fail(f"{option} needs the name of a file", code=2)
            value = arguments[1]
        _require_place_for(value, option)
        setattr(wanted, option.removeprefix("--trace-"), os.path.abspath(value))
        arguments = arguments[1:] if is_joined else arguments[2:]
    return (wanted if wanted != _Tracing() else None), arguments


def _require_place_for(path: str, option: str) -> None:
    """End the process if a file cannot be written: better now than once the program is done."""
    directory = os.path.dirname(os.path.abspath(path))
    if not path or os.path.isdir(path):
        _fail(f"{option}: {path!r} is not the name of a file", code=2)
    if not os.path.isdir(directory):
        _fail(f"{option}: can't write {path!r}: {directory} is no directory", code=2)
    if not os.access(directory, os.W_OK):
        _fail(f"{option}: can't write {path!r}: {directory} is read-only", code=2)


def _trace_later(wanted: _Tracing) -> None:
    """Trace from when the program has imported PyTensor, and report when the process ends.

    An exit function is called whichever way the program ends, after its traceback has been shown
    and its threads have finished, and leaves the exit code as it is. It is called last: what the
    program compiles in exit functions of its own is in the trace.
    """
    opened = contextlib.ExitStack()
    traces: list[Trace] = []
    process = os.getpid()

    def start() -> None:
        # At the exit of a program that was interrupted, no module may be imported that runs source
        # text, as those do that define dataclasses: Python then forgets the interrupt.
        from pytensor_fuse import trace_rewrites  # Loaded early.
        from pytensor_fuse._reports import page  # noqa: F401  # Loaded early.
        from pytensor_fuse._trace import page as trace_page  # noqa: F401  # Loaded early.

        traces.append(opened.enter_context(trace_rewrites()))

    def report() -> None:
        # A child that was forked ends as its parent would.
        if os.getpid() != process or not _began:
            return
        opened.close()
        if not traces:
            _say("nothing to trace: the program did not import PyTensor")
            return
        _report(traces[0], wanted)

    atexit.register(report)
    # It is imported as soon as PyTensor is: see `_startup`.
    after_import("pytensor_fuse._activation.switch", start)


def _report(trace: Trace, wanted: _Tracing) -> None:
    try:
        if wanted.html is not None:
            trace.to_html(wanted.html)
        if wanted.json is not None:
            from pytensor_fuse._reports import page

            page.write(wanted.json, json.dumps(trace.to_dict(), allow_nan=False))
    except OSError as error:
        _say(f"can't write the trace: {error}")
    if wanted.text:
        _write_error(f"{trace}\n")


def _run_tool(command: str, arguments: list[str]) -> NoReturn:
    global _began
    from pytensor_fuse._cli import reports

    _began = True
    reports.run(command, arguments)


def _run_script(path: str, arguments: list[str]) -> None:
    # As Python does, without normalising the rest of the path.
    file_name = os.path.join(os.getcwd(), path)
    try:
        with io.open_code(file_name) as file:
            source = file.read()
    except OSError as error:
        _fail(f"can't open {path!r}: {error.strerror}", code=2)
    sys.argv = [path, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    program = _new_main(cached=None)
    program.__file__ = file_name
    program.__loader__ = SourceFileLoader("__main__", file_name)
    _run(program, lambda: compile(source, file_name, "exec", dont_inherit=True))


def _run_module(name: str, arguments: list[str]) -> None:
    # What Python shows to a package that is imported on the way to the module.
    sys.argv = ["-m", *arguments]
    spec = _find_module(name)
    sys.argv[0] = spec.origin or name
    program = _new_main(cached=spec.cached)
    program.__file__ = spec.origin
    program.__loader__ = spec.loader
    program.__package__ = spec.parent
    program.__spec__ = spec
    _run(program, lambda: _code_of(spec))


def _new_main(cached: str | None) -> ModuleType:
    program = ModuleType("__main__")
    namespace = vars(program)
    namespace["__builtins__"] = builtins
    # Versions of Python differ in which of these they define.
    attributes: dict[str, object] = {"__annotations__": {}, "__cached__": cached}
    for name, value in attributes.items():
        if name in vars(sys.modules["__main__"]):
            namespace[name] = value
    return program


def _find_module(name: str) -> ModuleSpec:
    """Find the module, or for a package its ``__main__``; end the process if there is none."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is None:
            _fail(f"no module named {name}", code=1)
        if spec.submodule_search_locations is None:
            return spec
        spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        _fail(f"can't find module {name}: {type(error).__name__}: {error}", code=1)
    if spec is None:
        _fail(f"{name} is a package without a __main__ module", code=1)
    return spec


def _code_of(spec: ModuleSpec) -> CodeType:
    get_code = getattr(spec.loader, "get_code", None)
    code: CodeType | None = None if get_code is None else get_code(spec.name)
    if code is None:
        _fail(f"no code object available for {spec.name}", code=1)
    return code


def _run(program: ModuleType, compiled: Callable[[], CodeType]) -> None:
    global _began
    # For good, not for the time of the call: exit functions and threads may outlive it.
    sys.modules["__main__"] = program
    try:
        code = compiled()
        _began = True
        exec(code, vars(program))
    except BaseException:
        _show_frames_of(program)
        raise


def _show_frames_of(program: ModuleType) -> None:
    """Let a traceback that ends the process start at the program, as if it had run alone."""
    show = sys.excepthook

    def show_from_program(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        while traceback is not None and traceback.tb_frame.f_globals is not vars(program):
            traceback = traceback.tb_next
        show(kind, error.with_traceback(traceback), traceback)

    sys.excepthook = show_from_program


def _say_if_off() -> None:
    if not waiting.wanted():
        value = os.environ.get(VARIABLE)
        _say(f"{VARIABLE}={value} keeps the pass off")


def _fail(message: str, code: int) -> NoReturn:
    _say(message)
    sys.exit(code)


def _say(message: str) -> None:
    _write_error(f"pytensor_fuse: {message}\n")


def _write_error(text: str) -> None:
    # The program may have closed the stream, or put nothing in its place.
    if sys.stderr is not None and not sys.stderr.closed:
        sys.stderr.write(text)
