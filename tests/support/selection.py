"""Choice of tests: a representative part for each change, everything at night.

`make test` leaves out tests marked ``exhaustive``. A family of parametrized tests is thinned out
rather than dropped, always to the same cases:

- each case of a test for several backends runs on one of those that compile, in turns, or one case
  in five where Python runs it anyway;
- a test marked ``every(n)`` runs each n-th case;
- in the folders of `HALVED`, whose tests compile with Numba or C, a test of at least four cases
  runs every other one: the odd ones on the oldest Python, the even ones on the newer ones.

The other cases are marked ``exhaustive``. `make check` also leaves out tests marked ``slow``: those
that compile with Numba or C, start processes or open a browser.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

# Names of parameters that choose a backend, and the backends that take seconds to compile.
_CHOOSES = {"backend", "linker", "mode", "name", "target"}
_COMPILED = {"numba", "c", "cvm", "c|py"}
# The oldest Python runs other cases than the newer ones, so that together they run more.
_FIRST = int(sys.version_info >= (3, 12))

# Modules whose functions start a process, and files and folders in which most tests compile.
_PROCESSES = {
    "support.programs.processes",
    "support.programs.commands",
    "support.programs.forked",
    "support.web.browser",
    "support.web.pages",
}
SLOW = [
    "_accelerators/test_models.py",
    "_accelerators/test_same_graphs.py",
    "_cache/test_loaded.py",
    "_cache/test_numba_settings.py",
    "_core/test_hashcons.py",
    "_core/test_native_objects.py",
    "_identity/test_frozen.py",
    "_identity/test_terms.py",
    "_joins",
    "_linalg",
    "_native/c_entry",
    "_native/linking",
    "_native/lowering",
    "_native/mathematics",
    "_native/test_native_math.py",
    "_native/test_pymc_distributions.py",
    "_native/test_pymc_models.py",
    "_native/test_random_graphs.py",
    "test_figures.py",
    "test_guides.py",
    "test_pymc_models.py",
]


HALVED = ("_joins", "_linalg", "_native/lowering")
_MANY = 4


def mark(items: list[pytest.Item]) -> None:
    """Mark the tests that are slow, and the cases that are left out by default."""
    modules: dict[Path, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if _is_slow(item):
            item.add_marker("slow")
        if hasattr(item, "callspec"):
            modules[item.path].append(item)
    for tests in modules.values():
        _thin_out(tests)


def _thin_out(tests: list[pytest.Function]) -> None:
    """Mark the cases of a module's tests that are not representative."""
    families: dict[str, list[pytest.Function]] = defaultdict(list)
    cases: dict[tuple[str, str], dict[str, pytest.Function]] = defaultdict(dict)
    for item in tests:
        family = item.nodeid.partition("[")[0]
        families[family].append(item)
        backend = _backend_of(item)
        rest = [part for part in item.callspec.id.split("-") if part.lower() != backend]
        cases[family, "-".join(rest)][backend] = item
    for family in families.values():
        period = _period(family)
        for number, item in enumerate(family, _FIRST):
            if number % period:
                item.add_marker("exhaustive")
    compiling = (case for case in cases.values() if not _COMPILED.isdisjoint(case))
    for number, case in enumerate(compiling, _FIRST):
        compiled = [name for name in case if name in _COMPILED]
        period = 5 if len(compiled) < len(case) else len(compiled)
        for place, name in enumerate(compiled):
            if (number + place) % period:
                case[name].add_marker("exhaustive")


def _period(family: list[pytest.Function]) -> int:
    """Return n if each n-th case of a test is representative."""
    every = family[0].get_closest_marker("every")
    if every is not None:
        return int(every.args[0])
    is_halved = any(family[0].path.is_relative_to(TESTS / place) for place in HALVED)
    return 2 if is_halved and len(family) >= _MANY else 1


def _backend_of(item: pytest.Function) -> str:
    """Return the backend that a case names, in lower case, or nothing."""
    for name, given in item.callspec.params.items():
        if name in _CHOOSES and isinstance(given, str) and given.lower() in _COMPILED:
            return given.lower()
    return ""


def _is_slow(item: pytest.Item) -> bool:
    if hasattr(item, "callspec") and _backend_of(item):
        return True
    if not isinstance(item, pytest.Function):
        return False
    used = {getattr(value, "__module__", None) for value in vars(item.module).values()}
    if used & _PROCESSES or "browser" in item.fixturenames:
        return True
    return any(item.path.is_relative_to(TESTS / place) for place in SLOW)
