"""Set up the whole test session: where PyTensor compiles, and how much Hypothesis tries."""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

from support import selection
from support.web.browser import Browser, start_browser


def _use_own_compiledir() -> None:
    """Keep what the tests compile apart from the user's cache, in both directions.

    Must run before PyTensor is imported. The programs that tests start inherit the directory. A
    worker of pytest-xdist has one of its own: PyTensor's refresh of its module cache lists
    directories that another process may be deleting, without holding a lock against that.
    """
    flags = os.environ.get("PYTENSOR_FLAGS", "")
    given = dict(flag.split("=", 1) for flag in flags.split(",") if "=" in flag)
    if "compiledir" in given:
        return
    directory = given.get("base_compiledir")
    if directory is None:
        directory = tempfile.mkdtemp(prefix="pytensor-fuse-tests-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None:
        directory = os.path.join(directory, worker)
    given["base_compiledir"] = directory
    # Nobody debugs what is compiled here, and without its symbols GCC takes a quarter less, with
    # fewer optimizations a quarter of that. The deep tests run what users run.
    deep = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
    given.setdefault("gcc__cxxflags", "-g0" if deep else "-g0 -O0")
    os.environ["PYTENSOR_FLAGS"] = ",".join(f"{name}={value}" for name, value in given.items())


_use_own_compiledir()
# On newer versions of Python, which have newer ones of PyTensor, what the tests compile is
# rewritten, and compared with what the cache would have given.
os.environ.setdefault("PYTENSOR_FUSE_CACHE", "off" if sys.version_info < (3, 12) else "verify")
# Numba compiles in a fifth less; the deep tests run what users run.
if os.environ.get("HYPOTHESIS_PROFILE") != "deep":
    os.environ.setdefault("NUMBA_OPT", "1")

# Looked through for doctests, where it cannot be imported.
collect_ignore = [] if find_spec("pymc") else ["support/native/pymc_distributions.py"]

# No deadline: the first example of a test compiles for seconds, later ones come from a cache.
# Building a graph is slow by Hypothesis's measure, which is no fault of the strategy.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# Each profile multiplies the examples that a test asks for (`support.effort`).
for _name, _n_examples in {"check": 3, "default": 12, "nightly": 60}.items():
    settings.register_profile(
        _name,
        max_examples=_n_examples,
        derandomize="CI" in os.environ and _name != "nightly",
        print_blob=True,
        **_common,
    )
settings.register_profile("deep", max_examples=2000, print_blob=True, **_common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test` and `make check` leave out."""
    selection.mark(items)


@pytest.fixture(autouse=True)
def _settings_of_compiles() -> Iterator[None]:
    """Put back what PyTensor sets while it compiles.

    Its settings are of the process: where threads compile at once, each puts back what it found,
    and the last one may have found what another had set.
    """
    before = _read_settings()
    yield
    for name, value in _read_settings().items():
        if name in before and value is not before[name]:
            setattr(sys.modules["pytensor"].config, name, before[name])


@pytest.fixture
def numba_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have Numba compile all in its mode, here and in programs that the test starts."""
    import pytensor_fuse

    monkeypatch.setenv("PYTENSOR_FUSE_NATIVE", "off")
    with pytensor_fuse.enabled(False, "native"):
        yield


def _read_settings() -> dict[str, object]:
    config = getattr(sys.modules.get("pytensor"), "config", None)
    names = () if config is None else ("traceback__limit", "mode")
    return {name: getattr(config, name) for name in names}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One headless Chromium for the session; where there is none, the test is skipped."""
    started = start_browser()
    yield started
    started.driver.quit()
