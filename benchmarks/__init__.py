"""The figures of the documentation, each with the code that measures it: see README.md."""

import sys
from pathlib import Path

# The benchmarks measure models of the tests, and switch features on and off as they do.
_TESTS = str(Path(__file__).parents[1] / "tests")
if _TESTS not in sys.path:
    sys.path.append(_TESTS)
