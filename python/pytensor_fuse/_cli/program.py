"""Running a program as Python itself would.

The program's ``__main__`` has the attributes that Python would give it. In particular,
`multiprocessing` finds the program by its ``__file__`` or ``__spec__`` when it prepares a spawned
worker.
"""

from __future__ import annotations

import builtins
import importlib.util
import io
import linecache
import os
import pkgutil
import sys
import textwrap
from importlib.machinery import BuiltinImporter, ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from pytensor_fuse._cli.messages import fail

if TYPE_CHECKING:
    from collections.abc import Callable

# Whether the program or command has been found, and runs or has run.
_has_begun = False


def begin() -> None:
    """Note that the program or command has been found and begins to run."""
    global _has_begun
    _has_begun = True


def has_begun() -> bool:
    """Return whether the program or command runs or has run."""
    return _has_begun


def run_script(path: str, arguments: list[str], hint: Callable[[str], str]) -> None:
    """Run a script, or the ``__main__`` of a directory or a zip file.

    If there is no such file, the message ends with ``hint(path)``.
    """
    # Like Python, without normalizing the rest of the path.
    file_name = os.path.join(os.getcwd(), path)
    # Directories and zip files have an importer.
    importer = pkgutil.get_importer(file_name)
    if importer is not None:
        sys.argv = [path, *arguments]
        _run_importable(file_name, importer)
        return
    try:
        with io.open_code(file_name) as file:
            source = file.read()
    except OSError as error:
        end = hint(path) if isinstance(error, FileNotFoundError) else ""
        fail(f"can't open {path!r}: {error.strerror}{end}", code=2)
    sys.argv = [path, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    program = _new_main(cached=None)
    program.__file__ = file_name
    program.__loader__ = SourceFileLoader("__main__", file_name)
    _run(program, lambda: compile(source, file_name, "exec", dont_inherit=True))


def run_command(code: str, arguments: list[str]) -> None:
    """Run a program given as text, like ``python -c``."""
    sys.argv = ["-c", *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = ""
    program = _new_main(cached=None)
    vars(program).pop("__cached__", None)
    program.__loader__ = BuiltinImporter
    name = "<string>"
    if sys.version_info >= (3, 14):
        code = textwrap.dedent(code)
    if sys.version_info >= (3, 13):
        # Tracebacks and `inspect` read the source lines from here.
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    _run(program, lambda: compile(code, name, "exec", dont_inherit=True))


def _run_importable(path: str, importer: Any) -> None:
    """Run the ``__main__`` of a directory or a zip file."""
    if sys.flags.safe_path:
        # Its own modules can be imported nonetheless.
        sys.path.insert(0, path)
    else:
        sys.path[0] = path
    spec = importer.find_spec("__main__")
    if spec is None or spec.loader is None:
        fail(f"can't find '__main__' module in {sys.argv[0]!r}", code=1)
    _run_spec(spec)


def run_module(name: str, arguments: list[str]) -> None:
    """Run a module, or the ``__main__`` of a package."""
    # Python's own value while it imports the parent packages.
    sys.argv = ["-m", *arguments]
    spec = _find_module(name)
    sys.argv[0] = spec.origin or name
    _run_spec(spec)


def _run_spec(spec: ModuleSpec) -> None:
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
    # Versions of Python differ in whether they define these.
    attributes: dict[str, object] = {"__annotations__": {}, "__cached__": cached}
    for name, value in attributes.items():
        if name in vars(sys.modules["__main__"]):
            namespace[name] = value
    return program


def _find_module(name: str) -> ModuleSpec:
    """Find the module, or the ``__main__`` of a package; exit if there is none."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is None:
            fail(f"no module named {name}", code=1)
        if spec.submodule_search_locations is None:
            return spec
        spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        fail(f"can't find module {name}: {type(error).__name__}: {error}", code=1)
    if spec is None:
        fail(f"{name} is a package without a __main__ module", code=1)
    return spec


def _code_of(spec: ModuleSpec) -> CodeType:
    get_code = getattr(spec.loader, "get_code", None)
    code: CodeType | None = None if get_code is None else get_code(spec.name)
    if code is None:
        fail(f"no code object available for {spec.name}", code=1)
    return code


def _run(program: ModuleType, compiled: Callable[[], CodeType]) -> None:
    # Permanently, since exit functions and threads may outlive the call.
    sys.modules["__main__"] = program
    try:
        code = compiled()
        begin()
        exec(code, vars(program))
    except BaseException:
        _show_frames_of(program)
        raise


def _show_frames_of(program: ModuleType) -> None:
    """Start the traceback of a fatal error at the program, as if it had run alone."""
    show = sys.excepthook

    def show_from_program(
        class_: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        while traceback is not None and traceback.tb_frame.f_globals is not vars(program):
            traceback = traceback.tb_next
        show(class_, error.with_traceback(traceback), traceback)

    sys.excepthook = show_from_program
