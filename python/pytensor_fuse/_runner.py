"""``python -m pytensor_fuse``: run a program as Python itself would, with the pass on.

By the time this runs, the package has been imported, which is all that switches the pass on: see
`pytensor_fuse._startup`. What is left is to make the program's ``__main__`` what it would have
been. In particular `multiprocessing` finds the program, by its ``__file__`` or ``__spec__``, when
it prepares a spawned worker.
"""

from __future__ import annotations

import builtins
import importlib.util
import io
import os
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, NoReturn

from pytensor_fuse import _startup

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

USAGE = f"""\
usage: python -m pytensor_fuse script.py [argument ...]
       python -m pytensor_fuse -m module [argument ...]
       python -m pytensor_fuse audit FILE.py:NAME [option ...]
       python -m pytensor_fuse plan FILE.py:NAME [option ...]

Run a Python program, unchanged, with the fusion pass of pytensor_fuse on.

  -m module   run a module, as python -m does
  audit       say what a compiled function or a graph costs; see audit --help
  plan        show what of a graph would be fused, and why not more; see plan --help
  -h, --help  show this text

If there is a script called audit or plan in the current directory, that is run.

{_startup.VARIABLE}=0 in the environment keeps the pass off here, too: the same command line then
runs the program with PyTensor's own fusion.
"""


def main(arguments: list[str]) -> None:
    """Run the program that ``arguments`` names, with the arguments that follow it."""
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
            from pytensor_fuse import _cli

            _cli.run(command, rest)
        case [path, *rest]:
            _say_if_off()
            _run_script(path, rest)


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
    # For good, not for the time of the call: exit functions and threads may outlive it.
    sys.modules["__main__"] = program
    try:
        exec(compiled(), vars(program))
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
    if not _startup.wanted():
        value = os.environ.get(_startup.VARIABLE)
        _say(f"{_startup.VARIABLE}={value} keeps the pass off")


def _fail(message: str, code: int) -> NoReturn:
    _say(message)
    sys.exit(code)


def _say(message: str) -> None:
    sys.stderr.write(f"pytensor_fuse: {message}\n")
