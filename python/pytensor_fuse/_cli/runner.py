"""``python -m pytensor_fuse``: run a program as Python itself would, with the pass on.

By the time this runs, the package has been imported, which is all that switches the pass on: see
`pytensor_fuse._startup.waiting`.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from pytensor_fuse._cli import program, tracing
from pytensor_fuse._cli.messages import fail, say
from pytensor_fuse._startup import waiting
from pytensor_fuse._startup.features import VARIABLE

USAGE = f"""\
usage: python -m pytensor_fuse [option ...] script.py [argument ...]
       python -m pytensor_fuse [option ...] -m module [argument ...]
       python -m pytensor_fuse [option ...] -c code [argument ...]
       python -m pytensor_fuse audit FILE.py:NAME [option ...]
       python -m pytensor_fuse plan FILE.py:NAME [option ...]
       python -m pytensor_fuse cache [info | clear | path]
       python -m pytensor_fuse info [--json [FILE]]

Run a Python program, unchanged, with pytensor_fuse on: a script, a directory or
zip file with a __main__.py, a module, or a text.

  -m module          run a module, as python -m does
  -c code            run a text, as python -c does
  --trace            at the end, say on stderr which rewrites ran for each
                     pytensor.function, what they did and how long they took
  --trace-html FILE  write that as a page with a flame chart
  --trace-json FILE  write that as JSON, for pytensor_fuse.Trace.from_dict
  --trace-speedscope FILE, --trace-chrome FILE
                     write that for speedscope.app, for ui.perfetto.dev
  audit              say what a compiled function or a graph costs;
                     see audit --help
  plan               show what of a graph would be fused, and why not more;
                     see plan --help
  cache              say what rewritten graphs are kept on disk, remove them, or
                     say where they are
  info               say which versions there are, which features are on and why
                     the others are not, and what the cache holds
  -h, --help         show this text

The exit code is that of the program, even if the trace cannot be written when
it ends; before it starts, 2 if the command line is wrong or a file cannot be
read or written, and 1 if there is no such module.

If there is a script called audit, plan, cache or info in the current directory, that
is run.

{VARIABLE}=0 in the environment keeps the passes off here, too: the same command line then
runs the program with PyTensor's own. {VARIABLE}=fusion,merging has these features on.
"""


def main(arguments: list[str]) -> None:
    """Run the program that ``arguments`` names, with the arguments that follow it."""
    wanted, arguments = tracing.take_options(arguments)
    if wanted is not None and arguments[:1] not in (["-h"], ["--help"], []):
        tracing.trace_later(wanted)
    match arguments:
        case []:
            fail(f"no program to run\n\n{USAGE.rstrip()}", code=2)
        case ["-h" | "--help", *_]:
            sys.stdout.write(USAGE)
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
            fail(f"unknown option {option}; see python -m pytensor_fuse --help", code=2)
        case ["audit" | "plan" | "info" as command, *rest] if not os.path.isfile(command):
            _say_if_off()
            _run_report(command, rest)
        case ["cache", *rest] if not os.path.isfile("cache"):
            _run_cache(rest)
        case [path, *rest]:
            _say_if_off()
            program.run_script(path, rest)


def _run_report(command: str, arguments: list[str]) -> NoReturn:
    # Programs that are only run need none of it.
    from pytensor_fuse._cli import commands

    program.begin()
    commands.run(command, arguments)


def _run_cache(arguments: list[str]) -> None:
    from pytensor_fuse._cli import cache

    cache.run(arguments)


def _say_if_off() -> None:
    if not waiting.wanted():
        value = os.environ.get(VARIABLE)
        say(f"{VARIABLE}={value} keeps the pass off")
