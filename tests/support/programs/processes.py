"""Run Python in new processes, whose state no other test has touched."""

import os
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager

# In seconds, and more than anything needs on a slow and busy machine: what takes longer hangs.
PATIENCE = 600


def with_disk_cache(directory, **variables):
    """Return the environment of a process that keeps graphs, and what it compiles, in a directory.

    ``variables`` are further ones of it.
    """
    # The other flags stay: those of the session have C compiled in less time.
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

    A child keeps ignoring what its parent ignores, and a shell that runs the tests in the
    background has them ignore interrupts; this one ignores them only if asked to.
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
    """Run this Python with arguments, as `start_process` starts it, and with that to read."""
    with start_process(*arguments, stdin=subprocess.PIPE, **options) as process:
        stdout, stderr = process.communicate(stdin, timeout=PATIENCE)
    if check:
        assert process.returncode == 0, stderr
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def run_python(*code, flags=(), **options):
    """Run pieces of code, each indented as it may be."""
    return run_process(*flags, "-c", "\n".join(map(textwrap.dedent, code)), **options)
