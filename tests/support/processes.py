"""Run Python in new processes, whose state no other test has touched."""

import os
import subprocess
import sys
import textwrap


def run_process(*arguments, variable="", check=True, **options):
    """Run this Python with arguments; ``PYTENSOR_FUSE`` is ``variable``."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTENSOR_FUSE": variable},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        **options,
    )
    if check:
        assert done.returncode == 0, done.stderr
    return done


def run_python(*code, flags=(), **options):
    """Run pieces of code, each indented as it may be."""
    return run_process(*flags, "-c", "\n".join(map(textwrap.dedent, code)), **options)
