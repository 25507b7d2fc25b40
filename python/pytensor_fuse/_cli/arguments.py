"""The arguments of ``audit``, ``plan`` and ``info``."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from pytensor_fuse._cli.failures import MEANINGS, ExitCode, ReportError

_TARGET = """\
FILE.py:NAME is a name in a file: of a compiled function (what pytensor.function returns), of a
FunctionGraph, of a PyMC model, or of something to call without arguments that returns one of them.
Of a PyMC model, the report is on the log-density together with its gradient by all free variables:
audit compiles them in PyTensor's default mode, plan rewrites them as that mode does up to fusion.
What the file prints goes to the error stream. Code under if __name__ == "__main__" does not run."""

_CODES = "exit codes:\n" + "\n".join(f"  {code.value:<5}{text}" for code, text in MEANINGS.items())


# The name that stands for no file.
STANDARD_OUTPUT = "-"


class _Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        if "required: FILE.py:NAME" in message:
            message += " (put it before --json, which takes a FILE itself)"
        raise ReportError(ExitCode.USAGE, f"{message}; see {self.prog} --help")


def parser_of(command: str) -> argparse.ArgumentParser:
    """Return the parser of a command; what is wrong it raises as a `ReportError`."""
    says = {
        "audit": "Say what a compiled function or a graph costs, and where it could cost less.",
        "plan": "Show which Elemwise nodes of a graph would be fused, and why not more.",
        "info": "Say which versions there are, which features are on, and what the cache holds.",
    }
    about = f"\n\n{_TARGET}" if command != "info" else ""
    parser = _Parser(
        prog=f"python -m pytensor_fuse {command}",
        description=says[command] + about,
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if command == "info":
        _add_json(parser)
        return parser
    parser.add_argument("target", metavar="FILE.py:NAME", type=_target, help="what to report on")
    _add_json(parser)
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
            choices=("c", "python", "numba", "strict"),
            help="who compiles the kernels; by default who compiles the function, for a "
            "FunctionGraph only what all of them can compile is fused",
        )
    return parser


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json",
        metavar="FILE",
        nargs="?",
        const=STANDARD_OUTPUT,
        help="write the report as JSON; without a name, or to -, print it instead of the text",
    )


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
