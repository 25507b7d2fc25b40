"""Set up the whole test session: where PyTensor compiles, and how much Hypothesis tries."""

import atexit
import os
import shutil
import tempfile

from hypothesis import HealthCheck, settings


def _use_own_compiledir() -> None:
    """Keep what the tests compile apart from the user's cache, in both directions.

    Must run before PyTensor is imported. The workers of pytest-xdist and the programs that tests
    start inherit the directory; a directory given by the caller is left alone.
    """
    flags = os.environ.get("PYTENSOR_FLAGS", "")
    if "compiledir=" in flags:
        return
    directory = tempfile.mkdtemp(prefix="pytensor-fuse-tests-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.environ["PYTENSOR_FLAGS"] = ",".join(filter(None, [flags, f"base_compiledir={directory}"]))


_use_own_compiledir()

# No deadline: the first example of a test compiles for seconds, later ones come from a cache.
# Building a graph is slow by Hypothesis's measure, which is no fault of the strategy.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile(
    "default", max_examples=30, derandomize="CI" in os.environ, print_blob=True, **_common
)
settings.register_profile("deep", max_examples=2000, print_blob=True, **_common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
