"""Choice of tests: a representative part for each change, everything at night.

`make test` leaves out tests marked ``exhaustive``. A family of parametrized tests is thinned out
rather than dropped, always to the same cases:

- a test for several backends runs each case on at least one of them, and some cases on each;
- a test marked ``every(n)`` runs each n-th case.

The other cases are marked ``exhaustive``. `make check` also leaves out tests marked ``slow``: those
that compile with Numba or C, start processes or open a browser.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

# Names of parameters that choose a backend, and the backends that take seconds to compile.
_CHOOSES = {"backend", "linker", "mode", "target", "compiler"}
_COMPILED = {"numba", "c", "cvm", "c|py"}
# Of a case that Python runs in any case, each compiled backend runs one in this many.
_THINNED_TO = 3

# Modules whose functions start a process, and files and folders in which most tests compile.
_PROCESSES = {"support.processes", "support.forked", "support.browser", "support.pages"}
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


def mark(items: list[pytest.Item]) -> None:
    """Mark the tests that are slow, and the cases that are left out by default."""
    families = defaultdict(list)
    for item in items:
        if _is_slow(item):
            item.add_marker("slow")
        if hasattr(item, "callspec"):
            families[item.path, item.nodeid.partition("[")[0]].append(item)
    for family in families.values():
        _thin_out(family)


def _thin_out(family: list[pytest.Function]) -> None:
    every = family[0].get_closest_marker("every")
    if every is not None:
        for number, item in enumerate(family):
            if number % every.args[0]:
                item.add_marker("exhaustive")
        return
    cases: dict[str, dict[str, pytest.Function]] = defaultdict(dict)
    for item in family:
        cases[_case_of(item)][_backend_of(item)] = item
    backends = dict.fromkeys(name for case in cases.values() for name in case if _is_compiled(name))
    for number, case in enumerate(cases.values()):
        compiled = [name for name in case if _is_compiled(name)]
        period = min(_THINNED_TO if len(compiled) < len(case) else len(compiled), len(cases))
        for place, name in enumerate(backends):
            if name in case and period and (number + place) % period:
                case[name].add_marker("exhaustive")


def _case_of(item: pytest.Function) -> str:
    """Return the parameters other than the backend."""
    given = item.callspec.params
    return repr([(name, item.callspec.indices[name]) for name in given if name not in _CHOOSES])


def _backend_of(item: pytest.Function) -> str:
    return " ".join(str(given) for name, given in item.callspec.params.items() if name in _CHOOSES)


def _is_compiled(backend: str) -> bool:
    return backend.lower() in _COMPILED


def _is_slow(item: pytest.Item) -> bool:
    if hasattr(item, "callspec") and _is_compiled(_backend_of(item)):
        return True
    if not isinstance(item, pytest.Function):
        return False
    used = {getattr(value, "__module__", None) for value in vars(item.module).values()}
    if used & _PROCESSES or "browser" in item.fixturenames:
        return True
    return any(item.path.is_relative_to(TESTS / place) for place in SLOW)
