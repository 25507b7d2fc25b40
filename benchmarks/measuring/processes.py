"""Measurements that need a process of their own.

    python -m benchmarks.measuring.processes benchmarks.fusion.first:plan radon ours

What a process does for the first time it can do only once: import, ask PyTensor about scalar ops,
build kernels, fill the just-in-time compiler's caches. So each side gets a process, and the caller
starts them in turns. Peak memory belongs to a process as well. Only the standard library is
imported before the function, unless its module imports more.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measuring.turns import in_turns

ROOT = Path(__file__).parents[2]

# By side: what its processes reported.
Results = dict[str, list[dict[str, Any]]]

# Both sides differ in their rewriting alone, of graphs that are compiled for the first time.
REWRITING: Mapping[str, str | None] = {"PYTENSOR_FUSE_CACHE": "off", "PYTENSOR_FUSE_NATIVE": "off"}

# One thread each: of BLAS, of XLA's kernels and of its compiler.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NPROC": "1",
    "XLA_FLAGS": (
        "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        " --xla_cpu_parallel_codegen_split_count=1"
    ),
    # Small results are computed where they are asked for; the others, see `native.calls`.
    "JAX_CPU_ENABLE_ASYNC_DISPATCH": "0",
}

# What a user has, though other benchmarks turn the cache off.
AS_USERS: Mapping[str, str | None] = {"PYTENSOR_FUSE_CACHE": None, **ONE_THREAD}


def run(
    function: str,
    *arguments: str,
    ours: bool = True,
    directory: Path | None = None,
    variables: Mapping[str, str | None] = REWRITING,
) -> dict[str, Any]:
    """Call ``function``, as "package.module:name", in a new process with the package on or off.

    Returns what it returned, and as ``process`` the processor time of all of the process. Compile
    directories are below ``directory``, if there is one: the package keeps its own files there, so
    that all are empty where it is. Variables that are None are removed.

    Raises
    ------
    RuntimeError
        If the process fails; with what it wrote.
    """
    given: dict[str, str | None] = {**os.environ, **variables}
    given["PYTENSOR_FUSE"] = "1" if ours else "0"
    if directory is not None:
        flags = [flags] if (flags := given.get("PYTENSOR_FLAGS")) else []
        given["PYTENSOR_FLAGS"] = ",".join([*flags, f"base_compiledir={directory / 'pytensor'}"])
        given["NUMBA_CACHE_DIR"] = str(directory / "numba")
    environment = {name: value for name, value in given.items() if value is not None}
    command = [sys.executable, "-m", "benchmarks.measuring.processes", function, *arguments]
    start = _children_seconds()
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    elapsed = _children_seconds() - start
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"process": elapsed, **result}


def run_in_turns(
    function: str,
    *arguments: str,
    rounds: int,
    sides: Sequence[str] = ("stock", "ours"),
    directory: Path | None = None,
    **options: Any,
) -> Results:
    """What processes of each side report in each round; a function has its side as last argument.

    Each process has empty compile directories, unless there is one for each side in ``directory``.
    """

    def one(side: str) -> dict[str, Any]:
        given = {"ours": side == "ours", **options}
        if directory is not None:
            return run(function, *arguments, side, directory=directory / side, **given)
        with tempfile.TemporaryDirectory(prefix="pytensor-fuse-bench-") as empty:
            return run(function, *arguments, side, directory=Path(empty), **given)

    return in_turns({side: partial(one, side) for side in sides}, rounds)


def samples(results: Results, *keys: str) -> dict[str, list[float]]:
    """The sum of these entries of each result, by side."""
    return {
        side: [sum(result[key] for key in keys) for result in of_side]
        for side, of_side in results.items()
    }


def processor_seconds() -> float:
    """The time of the processor since the start of this process, that of its children as well."""
    return time.process_time() + _children_seconds()


def assert_honored(*, ours: bool) -> None:
    """Fail unless the package is on in this process, or off."""
    import pytensor_fuse

    assert pytensor_fuse.status()["fusion"].is_on == ours, "PYTENSOR_FUSE was not honored"


def lists(results: Any) -> list[Any]:
    """Results as JSON has them."""
    import numpy as np

    return [np.asarray(result).tolist() for result in results]


def _children_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    module, _, name = sys.argv[1].partition(":")
    print(json.dumps(getattr(importlib.import_module(module), name)(*sys.argv[2:])))
