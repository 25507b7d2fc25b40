"""The arguments of the commands that make reports."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from pytensor_fuse._cli.failures import ExitCode, ReportError

_TARGET = """\
FILE.py:NAME names a compiled function (the result of pytensor.function), a FunctionGraph, a PyMC
model, or a callable without arguments that returns one of these.
For a PyMC model, the report covers the log-density and its gradient by all free variables: plan
rewrites them as PyTensor's default mode does before fusion, the other commands compile them.
Output of the file goes to stderr. Code under if __name__ == "__main__" does not run."""

# Failures of FILE.py:NAME, which some commands take.
_OF_TARGETS = {
    ExitCode.NO_FILE,
    ExitCode.FILE_FAILS,
    ExitCode.NO_NAME,
    ExitCode.NOT_REPORTABLE,
}

# The file name that stands for standard output.
STANDARD_OUTPUT = "-"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, raised as `ReportError`."""

    def error(self, message: str) -> NoReturn:
        if "required: FILE.py:NAME" in message:
            message += " (put it before --json, which takes a FILE itself)"
        raise ReportError(ExitCode.USAGE, f"{message}; see {self.prog} --help")


# The commands that report on an object in a file, with their descriptions.
_ABOUT = {
    "audit": "Report the costs of a compiled function or a graph, and possible savings.",
    "explain": "Explain what was done to a compiled function or a graph, and why not more.",
    "plan": "Show which Elemwise nodes of a graph would be fused, and why not more.",
    "info": "Show versions, the machine, the states of the features, and the size of the cache.",
}


def exit_codes(*, of_targets: bool) -> str:
    """Return the exit codes as text; those of FILE.py:NAME only if ``of_targets``."""
    codes = [code for code in ExitCode if of_targets or code not in _OF_TARGETS]
    return "\n".join(["exit codes:", *(f"  {code.value:<5}{code.meaning}" for code in codes)])


def parser_of(command: str) -> argparse.ArgumentParser:
    """Return the parser of a command; its errors are raised as `ReportError`."""
    about = f"\n\n{_TARGET}" if command != "info" else ""
    parser = Parser(
        prog=f"pytensor-fuse {command}",
        description=_ABOUT[command] + about,
        epilog=exit_codes(of_targets=command != "info"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if command != "info":
        parser.add_argument(
            "target", metavar="FILE.py:NAME", type=_target, help="the report's subject"
        )
    parser.add_argument(
        "--json",
        metavar="FILE",
        nargs="?",
        const=STANDARD_OUTPUT,
        help="write the report as JSON; without a name, or with -, print JSON instead of the text",
    )
    if command == "info":
        return parser
    parser.add_argument("--html", metavar="FILE", help="write the report as a self-contained page")
    if command != "plan":
        parser.add_argument(
            "--shape",
            metavar="INPUT=N,N",
            action=_Shape,
            help="the shape of an input, with ? for an unknown length; may be given once for each "
            "input",
        )
        return parser
    parser.add_argument("--svg", metavar="FILE", help="write a static picture")
    parser.add_argument("--dot", metavar="FILE", help="write a graph for Graphviz")
    parser.add_argument(
        "--target",
        dest="compile_for",
        choices=("c", "python", "numba", "strict"),
        help="the compiler of the kernels. The default is the function's compiler; for a "
        "FunctionGraph, only nodes that all compilers support are fused by default",
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
