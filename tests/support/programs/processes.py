"""Run Python in new processes, whose state no other test has touched."""

import os
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager

# In seconds, and longer than anything takes on a slow and busy machine: a longer run hangs.
PATIENCE = 600


def with_disk_cache(directory, **variables):
    """Return the environment of a process that caches graphs and compiled code in a directory.

    ``variables`` are added to it.
    """
    # The other flags are kept: those of the session speed up the compilation of C.
    given = os.environ.get("PYTENSOR_FLAGS", "").split(",")
    flags = [flag for flag in given if flag and "compiledir=" not in flag]
    flags = ",".join([*flags, f"base_compiledir={directory}"])
    own = {"PYTENSOR_FUSE_CACHE": "disk", "PYTENSOR_FLAGS": flags}
    return {**os.environ, **own, **variables}


@contextmanager
def start_process(
    *arguments,
    variable="",
    env=os.environ,
    ignore_interrupts=False,
    stderr=subprocess.PIPE,
    **options,
):
    """Start this Python with arguments, and end it in the end; ``PYTENSOR_FUSE`` is ``variable``.

    A child inherits ignored signals, and a shell ignores interrupts for tests in the background;
    this child ignores them only if requested.
    """
    interrupt = signal.SIG_IGN if ignore_interrupts else signal.default_int_handler
    inherited = signal.signal(signal.SIGINT, interrupt)
    try:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            env={**env, "PYTENSOR_FUSE": variable},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            **options,
        )
    finally:
        signal.signal(signal.SIGINT, inherited)
    with process:
        try:
            yield process
        finally:
            process.kill()


def run_process(*arguments, check=True, stdin="", **options):
    """Run this Python with arguments, started by `start_process`, with the given input."""
    with start_process(*arguments, stdin=subprocess.PIPE, **options) as process:
        stdout, stderr = process.communicate(stdin, timeout=PATIENCE)
    if check:
        assert process.returncode == 0, stderr
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def run_python(*code, flags=(), **options):
    """Run indented pieces of code."""
    return run_process(*flags, "-c", "\n".join(map(textwrap.dedent, code)), **options)
