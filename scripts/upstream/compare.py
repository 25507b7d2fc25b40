"""Run PyTensor's own tests with this package, and list those that PyTensor alone passes.

    git clone --depth 1 --branch rel-3.3.8 https://github.com/pymc-devs/pytensor /tmp/source
    python scripts/upstream/compare.py /tmp/source tests/link/numba

The source is that of the installed version: an sdist has none of these tests. The tests run
on the installed PyTensor, with everything of this package at its default, the cache on disk
included; then again with machine code off, so that Numba compiles. Only tests that failed in one of
these run without the package. Arguments after the paths are for pytest, as in ``-n 2``.

The exit code is 0 if there is no new failure, 1 if there is one that ``known.txt`` does not name, 2
if no test passed with the package: then nothing has been found out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
KNOWN = FOLDER / "known.txt"

# How `outcomes` names what it says of a file, and not of a test in it.
COLLECTING = "collecting "

# The ways of this package, and what the environment says for each.
WAYS = {"everything on": {}, "machine code off": {"PYTENSOR_FUSE_NATIVE": "off"}}

# What a shell or another run may have set, which would decide what is tested.
_UNSET = ("PYTENSOR_FUSE", "PYTENSOR_FUSE_CACHE", "PYTENSOR_FUSE_NATIVE", "PYTHONDONTWRITEBYTECODE")

# Pytest's exit codes: all passed, some failed, none collected.
_ENDED_BY_ITSELF = (0, 1, 5)


class Outcome(NamedTuple):
    """The outcome of a test, and the first line of its error if it failed."""

    passed: bool
    message: str


class Known(NamedTuple):
    """A failure that is as it should be: of which tests, what they say, and why."""

    pattern: str
    message: str
    reason: str

    def excuses(self, name: str, outcome: Outcome) -> bool:
        return fnmatchcase(name, self.pattern) and self.message in outcome.message


def known_failures(text: str) -> list[Known]:
    """Read the failures that are as they should be.

    Raises
    ------
    ValueError
        If one has no message or no reason.
    """
    found = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        told, _, reason = line.partition("  # ")
        pattern, _, message = told.partition("  ~ ")
        if not (pattern.strip() and message.strip() and reason.strip()):
            raise ValueError(f"{line!r} is not of the form 'PATTERN  ~ MESSAGE  # REASON'")
        found.append(Known(pattern.strip(), message.strip(), reason.strip()))
    return found


def new_failures(ours: dict[str, Outcome], stock: dict[str, Outcome]) -> list[str]:
    """Return the tests that fail with the package, and pass without it.

    Of files, only those are noted that cannot be collected: one that stock's run does not name can.
    """
    return [
        name
        for name, outcome in ours.items()
        if not outcome.passed
        and (stock[name].passed if name in stock else name.startswith(COLLECTING))
    ]


def run(
    folder: Path,
    arguments: Sequence[str],
    environment: dict[str, str],
    *,
    ours: bool,
    only: Collection[str] | None = None,
) -> dict[str, Outcome]:
    """Run tests in a process of its own, and return how each went.

    Parameters
    ----------
    folder
        Where the tests are.
    arguments
        Those of pytest: paths in the folder, and options.
    environment
        What it says besides what this process was given.
    ours
        Whether this package is imported.
    only
        The tests that are run; all if there is none.
    """
    with tempfile.TemporaryDirectory(prefix="pytensor-fuse-upstream-") as directory:
        outcomes, chosen = Path(directory, "outcomes"), Path(directory, "chosen")
        # A worker of pytest-xdist may run this; its tests are not those of that pytest.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name not in _UNSET and not name.startswith("PYTEST_XDIST_")
        }
        flags = [inherited.get("PYTENSOR_FLAGS"), f"base_compiledir={directory}/compiled"]
        inherited["PYTENSOR_FLAGS"] = ",".join(filter(None, flags))
        paths = [str(FOLDER), inherited.get("PYTHONPATH")]
        inherited["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        inherited["UPSTREAM_OUTCOMES"] = str(outcomes)
        if only is not None:
            chosen.write_text(json.dumps(sorted(only)))
            inherited["UPSTREAM_CHOSEN"] = str(chosen)
        plugins = ["-p", "outcomes", *(["-p", "pytensor_fuse"] if ours else [])]
        options = "-q --tb=no --benchmark-disable --continue-on-collection-errors -o addopts="
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options.split(), *plugins, *arguments],
            cwd=folder,
            env={**inherited, **environment},
            check=False,
        )
        lines = outcomes.read_text().splitlines() if outcomes.exists() else []
    if done.returncode not in _ENDED_BY_ITSELF:
        last = json.loads(lines[-1])[0] if lines else "nothing"
        raise RuntimeError(
            f"pytest ended with {done.returncode}, and the last test that it had run was {last}: "
            "look at the one after it"
        )
    return {name: Outcome(passed, message) for name, passed, message in map(json.loads, lines)}


def main(source: Path, arguments: Sequence[str]) -> int:
    known = known_failures(KNOWN.read_text())
    results: dict[str, dict[str, Outcome]] = {}
    with tempfile.TemporaryDirectory(prefix="pytensor-fuse-upstream-") as directory:
        # Beside the source's package, Python would import that one and not the installed one.
        folder = Path(directory, "source")
        folder.mkdir()
        shutil.copytree(source / "tests", folder / "tests")
        for name in ("conftest.py", "pyproject.toml"):
            if (source / name).exists():
                shutil.copy(source / name, folder / name)
        for way, environment in WAYS.items():
            print(f"==> {way}", flush=True)
            results[way] = run(folder, arguments, environment, ours=True)
        failed = {name for ours in results.values() for name, one in ours.items() if not one.passed}
        print(f"==> without the package, what failed: {len(failed)}", flush=True)
        stock = run(folder, arguments, {}, ours=False, only=failed) if failed else {}
    return report(results, stock, known)


def report(
    results: dict[str, dict[str, Outcome]], stock: dict[str, Outcome], known: Sequence[Known]
) -> int:
    """Print what is new, and return the exit code."""
    n_new = 0
    for way, ours in results.items():
        n_passed = sum(one.passed for one in ours.values())
        print(f"{way}: {n_passed} passed, {len(ours) - n_passed} failed")
        if not n_passed:
            print("no test passed with the package: is the source that of the installed version?")
            return 2
        for name in new_failures(ours, stock):
            outcome = ours[name]
            reason = next((one.reason for one in known if one.excuses(name, outcome)), None)
            n_new += reason is None
            print(f"  {'NEW' if reason is None else 'known'}  {name}: {reason or outcome.message}")
    print(f"{n_new} new failures")
    return 1 if n_new else 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or not Path(sys.argv[1], "tests").is_dir():
        sys.exit(
            f"usage: {sys.argv[0]} SOURCE [PYTEST_ARGUMENT ...], and SOURCE has PyTensor's tests"
        )
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:] or ["tests/link/numba"]))
