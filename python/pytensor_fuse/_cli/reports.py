"""``python -m pytensor_fuse audit`` and ``plan``: reports about what a file holds.

The commands end the process, with one line on the error stream and an exit code of its own for each
way in which they can fail. What else the process prints, the file's code for one, goes to the error
stream too, so that the output is the report alone.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib.util
import json
import os
import sys
import threading
import traceback
from dataclasses import asdict
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    from pytensor.compile.executor import Function
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._audit.audit import Audit
    from pytensor_fuse._plan import FusionPlan

OURS = 1
USAGE = 2
NO_FILE = 3
FILE_FAILS = 4
NO_NAME = 5
WRONG_KIND = 6
CANNOT_WRITE = 7
CANNOT_REPORT = 8
UNKNOWN_OPS = 9
INTERRUPTED = 130

_TARGET = """\
FILE.py:NAME is a name in a file: of a compiled function (what pytensor.function returns), of a
FunctionGraph, of a PyMC model, or of something to call without arguments that returns one of them.
Of a PyMC model, the report is on the log-density together with its gradient by all free variables:
audit compiles them in PyTensor's default mode, plan rewrites them as that mode does up to fusion.
What the file prints goes to the error stream. Code under if __name__ == "__main__" does not run."""

_CODES = f"""\
exit codes:
  0    the report is made
  {OURS}    a mistake of pytensor_fuse's own; please report it
  {USAGE}    the command line is wrong
  {NO_FILE}    FILE.py cannot be read
  {FILE_FAILS}    FILE.py fails when it is imported, or NAME when it is called
  {NO_NAME}    there is no NAME in FILE.py
  {WRONG_KIND}    NAME is nothing that can be reported on
  {CANNOT_WRITE}    an output file cannot be written
  {CANNOT_REPORT}    no report can be made: shapes that cannot be, a model that does not compile
  {UNKNOWN_OPS}    the audit is made, and there are ops in it that it does not know
  {INTERRUPTED}  interrupted"""

# So many unknown ops are named.
_NAMED = 5
# A step that takes longer is named, on a terminal each is.
_LONG = 2.0


class _ReportError(Exception):
    """What the user is told, with the exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


# What is to be printed, if anything, and what is to be said after it.
_Report = tuple[str | None, _ReportError | None]


def run(command: str, arguments: Sequence[str]) -> NoReturn:
    """Do what a command line asks for, and end the process."""
    try:
        options = _parser(command).parse_args(arguments)
        output = _take_output()
        report, remark = _REPORTS[command](options)
        if report is not None:
            _print(output, report)
        if remark is not None:
            raise remark
    except _ReportError as failure:
        _end(failure.code, str(failure))
    except KeyboardInterrupt:
        _end(INTERRUPTED, "interrupted")
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        _end(
            OURS,
            f"{_one_line(error)} ({Path(where.filename).name}, line {where.lineno}); "
            "this is a mistake of pytensor_fuse's own, please report it",
        )
    sys.exit(0)


def _audit(options: argparse.Namespace) -> _Report:
    places = _Places(options.html)
    value = _load(options.target)
    from pytensor_fuse._audit.audit import audit

    compiled = _compiled_model(value) if _is_model(value) else value
    try:
        with _step("auditing"):
            found: Audit = audit(compiled, shapes=options.shape)
    except ValueError as error:
        raise _ReportError(CANNOT_REPORT, _one_line(error)) from error
    places.write(options.html, found.to_html)
    remark = None
    if found.ops.unknown:
        names = ", ".join(op.name for op in found.ops.unknown[:_NAMED])
        more = ", ..." if len(found.ops.unknown) > _NAMED else ""
        remark = _ReportError(UNKNOWN_OPS, f"the audit does not know these ops: {names}{more}")
    if options.json:
        return _json(found.to_dict()), remark
    return str(found) if options.html is None else None, remark


def _plan(options: argparse.Namespace) -> _Report:
    places = _Places(options.html, options.svg, options.dot)
    value = _load(options.target)
    from pytensor.compile.executor import Function

    from pytensor_fuse._plan import plan_fusion
    from pytensor_fuse._reports import page

    target = options.compile_for
    if _is_model(value):
        fgraph, mode = _rewritten_model(value)
        target = target or mode
    elif isinstance(value, Function):
        fgraph = value.maker.fgraph
        target = target or value.maker.linker
    else:
        fgraph = value
    with _step("planning"):
        plan: FusionPlan = plan_fusion(fgraph, target=target)
    places.write(options.html, plan.to_html)
    places.write(options.svg, lambda path: page.write(path, plan.to_svg()))
    places.write(options.dot, lambda path: page.write(path, plan.to_dot()))
    if options.json:
        return _json(_plan_dict(plan)), None
    return None if options.html or options.svg or options.dot else str(plan), None


_REPORTS = {"audit": _audit, "plan": _plan}


def _plan_dict(plan: FusionPlan) -> dict[str, Any]:
    return {
        "stats": asdict(plan.stats),
        "kernels": [
            {
                "ops": [str(node.op) for node in kernel.nodes],
                "inputs": [str(variable) for variable in kernel.inputs],
                "outputs": [str(variable) for variable in kernel.outputs],
            }
            for kernel in plan.kernels
        ],
        "unfused": [str(node.op) for node in plan.unfused],
    }


# The command line -------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        raise _ReportError(USAGE, f"{message}; see {self.prog} --help")


def _parser(command: str) -> argparse.ArgumentParser:
    says = {
        "audit": "Say what a compiled function or a graph costs, and where it could cost less.",
        "plan": "Show which Elemwise nodes of a graph would be fused, and why not more.",
    }
    parser = _Parser(
        prog=f"python -m pytensor_fuse {command}",
        description=f"{says[command]}\n\n{_TARGET}",
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("target", metavar="FILE.py:NAME", type=_target, help="what to report on")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--html", metavar="FILE", help="write the report as a page of its own")
    if command == "audit":
        parser.add_argument(
            "--shape",
            metavar="INPUT=N,N",
            action=_Shape,
            help="the shape of an input, ? for a length that is not known; for several inputs, "
            "several times",
        )
    else:
        parser.add_argument("--svg", metavar="FILE", help="write a still picture")
        parser.add_argument("--dot", metavar="FILE", help="write a graph for Graphviz")
        parser.add_argument(
            "--target",
            dest="compile_for",
            choices=("c", "python", "numba"),
            help="who compiles the kernels; by default who compiles the function, for a "
            "FunctionGraph only what all of them can compile is fused",
        )
    return parser


def _target(text: str) -> tuple[str, str]:
    path, colon, name = text.rpartition(":")
    if not (path and colon and name):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form FILE.py:NAME")
    return path, name


class _Shape(argparse.Action):
    """Collects the shapes of inputs by name."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        name, equals, lengths = values.rpartition("=")
        shapes = getattr(namespace, self.dest) or {}
        try:
            parts = [part.strip() for part in lengths.split(",")]
            if not parts[-1]:
                parts.pop()
            shapes[name] = tuple(None if part == "?" else int(part) for part in parts)
        except ValueError:
            name = ""
        if not (name and equals):
            parser.error(f"{option_string} {values!r} is not of the form INPUT=N,N")
        setattr(namespace, self.dest, shapes)


# What a file holds ------------------------------------------------------------------------


def _load(target: tuple[str, str]) -> Any:
    """Return the function, graph or model that a file has under a name."""
    path, name = target
    with _step(f"importing {path}"):
        module = _import(path)
    value = _find(module, path, name)
    if _is_reportable(value):
        return value
    if isinstance(value, type) or not callable(value):
        raise _ReportError(
            WRONG_KIND, f"{name} in {path} is {_article(value)}; {_what_is_reported(module)}"
        )
    with _step(f"calling {name}"), _blaming(path, f"{name} in {path} fails"):
        returned = value()
    if not _is_reportable(returned):
        raise _ReportError(
            WRONG_KIND,
            f"{name} in {path} returns {_article(returned)}; {_what_is_reported(module)}",
        )
    return returned


def _import(path: str) -> ModuleType:
    try:
        with open(path, "rb") as file:
            file.read(1)
    except OSError as error:
        raise _ReportError(NO_FILE, f"{path} cannot be read: {error.strerror}") from error
    name = Path(path).stem
    if name in sys.modules:
        # It must not take the place of what others import.
        name = f"{name} in {path}"
    loader = SourceFileLoader(name, os.path.abspath(path))
    spec = importlib.util.spec_from_file_location(name, loader.path, loader=loader)
    assert spec is not None, "there is a loader"
    module = importlib.util.module_from_spec(spec)
    # As for a script, what is beside the file can be imported.
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
    """Turn what somebody's code raises into one line, with the line of their file."""
    try:
        yield
    except (KeyboardInterrupt, but):
        raise
    except BaseException as error:
        where = _line_of(error, path)
        at = "" if where is None else f" on line {where}"
        raise _ReportError(FILE_FAILS, f"{what}{at}: {_one_line(error)}") from error


def _line_of(error: BaseException, path: str) -> int | None:
    """Return the last line of a file that an error came through."""
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
            raise _ReportError(NO_NAME, f"there is no {name} in {path}{hint}") from None
    return value


def _is_reportable(value: object) -> bool:
    from pytensor.compile.executor import Function
    from pytensor.graph.fg import FunctionGraph

    return isinstance(value, Function | FunctionGraph) or _is_model(value)


def _is_model(value: object) -> bool:
    pymc = sys.modules.get("pymc")
    return pymc is not None and isinstance(value, pymc.Model)


def _what_is_reported(module: ModuleType) -> str:
    there = [name for name, value in vars(module).items() if _is_reportable(value)]
    kinds = "give a compiled function, a FunctionGraph, a PyMC model or what returns one"
    return f"{kinds}, such as {' or '.join(there[:3])}" if there else kinds


def _article(value: object) -> str:
    name = f"class {value.__name__}" if isinstance(value, type) else type(value).__name__
    return f"an {name}" if name[0] in "AEIOUaeiou" else f"a {name}"


# Models -----------------------------------------------------------------------------------


def _compiled_model(model: Any) -> Function:
    import pytensor

    with _step("compiling the log-density and its gradient"), _no_report("cannot be compiled"):
        outputs = [model.logp(), model.dlogp()]
        function: Function = pytensor.function(model.value_vars, outputs, on_unused_input="ignore")
    return function


def _rewritten_model(model: Any) -> tuple[FunctionGraph, Any]:
    """Return the graph that the default mode would come to fuse, with that mode."""
    from pytensor.compile.mode import get_default_mode
    from pytensor.compile.sharedvalue import SharedVariable
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.traversal import graph_inputs

    from pytensor_fuse._pytensor.databases import rewriters_before_fusion

    with _step("rewriting the log-density and its gradient"), _no_report("cannot be rewritten"):
        outputs = [model.logp(), model.dlogp()]
        shared = [v for v in graph_inputs(outputs) if isinstance(v, SharedVariable)]
        fgraph = FunctionGraph([*model.value_vars, *shared], outputs, clone=True)
        mode = get_default_mode()
        rewriters_before_fusion(mode).rewrite(fgraph)
    return fgraph, mode


@contextlib.contextmanager
def _no_report(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise _ReportError(CANNOT_REPORT, f"the model {what}: {_one_line(error)}") from error


# Output -----------------------------------------------------------------------------------


class _Places:
    """Output files, as they are called where the command was given."""

    def __init__(self, *paths: str | None) -> None:
        """Refuse, before the work, what is sure not to be written after it."""
        # The file may change the directory.
        self._start = os.getcwd()
        for path in paths:
            if path is not None:
                with self._writing(path):
                    self._check(path)

    def write(self, path: str | None, write: Callable[[str], object]) -> None:
        """Write a file, if it is asked for."""
        if path is not None:
            with self._writing(path), _step(f"writing {path}"):
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
            raise _ReportError(
                CANNOT_WRITE, f"{path or repr(path)} cannot be written: {why}"
            ) from error


def _take_output() -> IO[str]:
    """Return the output stream, and let all that is printed from now on go to the error stream.

    That includes what programs and libraries write that know nothing of ``sys.stdout``.
    """
    if sys.stdout is None:
        raise _ReportError(CANNOT_WRITE, "there is no standard output")
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


def _json(found: dict[str, Any]) -> str:
    return json.dumps(found, indent=2)


def _print(output: IO[str], text: str) -> None:
    try:
        with output:
            output.write(f"{text}\n")
    except BrokenPipeError:
        # Who read it has seen enough.
        pass
    except OSError as error:
        why = f"the report cannot be written: {error.strerror}"
        raise _ReportError(CANNOT_WRITE, why) from error


@contextlib.contextmanager
def _step(what: str) -> Iterator[None]:
    """Say what is being done, on a terminal at once, otherwise only if it takes long."""
    if sys.stderr is not None and sys.stderr.isatty():
        _say(f"{what} ...")
        yield
        return
    timer = threading.Timer(_LONG, _say, (f"{what} ...",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _one_line(error: BaseException) -> str:
    """Return the kind of an error and the first line of what it says."""
    name = type(error).__name__
    try:
        lines = [line for line in str(error).splitlines() if line.strip()]
    except Exception:
        lines = []
    return f"{name}: {lines[0].strip()}" if lines else name


def _end(code: int, message: str) -> NoReturn:
    _say(message)
    sys.exit(code)


def _say(message: str) -> None:
    if sys.stderr is None:
        return
    sys.stderr.write(f"pytensor_fuse: {message}\n")
    sys.stderr.flush()
