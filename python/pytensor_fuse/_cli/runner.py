"""The command ``pytensor-fuse``: runs a program as Python would, with the pass on.

Importing the package has already switched the pass on: see `pytensor_fuse._startup.waiting`.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from pytensor_fuse._cli import program, tracing
from pytensor_fuse._cli.messages import fail, say
from pytensor_fuse._core import __version__
from pytensor_fuse._startup import waiting
from pytensor_fuse._startup.features import VARIABLE

USAGE = f"""\
usage: pytensor-fuse [option ...] script.py [argument ...]
       pytensor-fuse [option ...] -m module [argument ...]
       pytensor-fuse [option ...] -c code [argument ...]
       pytensor-fuse explain FILE.py:NAME [option ...]
       pytensor-fuse audit FILE.py:NAME [option ...]
       pytensor-fuse plan FILE.py:NAME [option ...]
       pytensor-fuse cache [info | clear | path]
       pytensor-fuse info [--json [FILE]]

python -m pytensor_fuse is the same command.

Run a Python program, unchanged, with pytensor_fuse on: a script, a directory or
zip file with a __main__.py, a module, or code.

  -m module          run a module, as python -m does
  -c code            run code, as python -c does
  --trace            at the end, print to stderr which rewrites ran for each
                     pytensor.function, with their changes and times
  --trace-html FILE  write the trace as a page of tables
  --trace-json FILE  write the trace as JSON, for Trace.from_dict
  --trace-speedscope FILE, --trace-chrome FILE
                     write the trace for speedscope.app, for ui.perfetto.dev
  explain            say what was done to a compiled function or a graph, and why
                     not more; see explain --help
  audit              report the costs of a compiled function or a graph;
                     see audit --help
  plan               show which nodes of a graph would be fused, and why not
                     more; see plan --help
  cache              print the size of the cache of rewritten graphs on disk,
                     clear it, or print its path
  info               show versions, the machine, which features are on and why the
                     others are off, and the size of the cache
  --version          show the version
  -h, --help         show this text

The exit code is the program's, even if the trace cannot be written at the end;
before the program starts, it is 2 for a wrong command line or a file that cannot
be read or written, and 1 for an unknown module. The codes of the other commands
are in their --help: 0 is success.

A word that is a command is never a file: write ./info to run a script of that name.

{VARIABLE}=0 in the environment keeps the passes off here, too: the same command line then
runs the program with PyTensor's own. {VARIABLE}=fusion,merging switches on these features only.
"""

_REPORTS = ("audit", "explain", "plan", "info")
_COMMANDS = (*_REPORTS, "cache")


def run_console_script() -> None:
    """Run ``pytensor-fuse``, which finds modules where ``python -m pytensor_fuse`` does."""
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd()
    main(sys.argv[1:])


def main(arguments: list[str]) -> None:
    """Run the program that ``arguments`` name, with the arguments after it."""
    wanted, arguments = tracing.take_options(arguments)
    if wanted is not None and arguments[:1] not in (["-h"], ["--help"], ["--version"], []):
        tracing.trace_later(wanted)
    match arguments:
        case []:
            fail(f"no program to run\n\n{USAGE.rstrip()}", code=2)
        case ["-h" | "--help", *_]:
            sys.stdout.write(USAGE)
        case ["--version", *_]:
            sys.stdout.write(f"pytensor-fuse {__version__}\n")
        case ["-m"]:
            fail("-m needs the name of a module", code=2)
        case ["-c"]:
            fail("-c needs the text of a program", code=2)
        case ["-c", code, *rest]:
            _say_if_off()
            program.run_command(code, rest)
        case ["-m", name, *rest]:
            _say_if_off()
            program.run_module(name, rest)
        case [option, *_] if option.startswith("-"):
            fail(f"unknown option {option}; see pytensor-fuse --help", code=2)
        case [command, *rest] if command in _REPORTS:
            _say_if_off()
            _run_report(command, rest)
        case ["cache", *rest]:
            # Imported here, since runs of programs do not need it.
            from pytensor_fuse._cli import cache

            cache.run(rest)
        case [path, *rest]:
            _say_if_off()
            program.run_script(path, rest, _meant)


def _meant(word: str) -> str:
    """Return a question for the command that a word resembles, or nothing."""
    # Imported here, since programs that run must not find it loaded.
    import difflib

    similar = difflib.get_close_matches(word.lower(), _COMMANDS, n=1) if word.isidentifier() else []
    return f"; is the command {similar[0]} meant?" if similar else ""


def _run_report(command: str, arguments: list[str]) -> NoReturn:
    from pytensor_fuse._cli import commands

    program.begin()
    commands.run(command, arguments)


def _say_if_off() -> None:
    if not waiting.wanted():
        value = os.environ.get(VARIABLE)
        say(f"{VARIABLE}={value} keeps the pass off")
