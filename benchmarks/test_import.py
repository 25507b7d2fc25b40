"""Importing the package once PyTensor is imported."""

from __future__ import annotations

from statistics import median

import child
from conftest import Pair
from rows import Row


def test_import(pair: Pair) -> None:
    child.run("import")  # writes the byte code
    results = pair.alone(lambda: child.run("import"), rounds=7)
    # A fifth of PyTensor's own import: the features are compared with its sources, and switched on.
    milliseconds = 1e3 * median(result["seconds"] for result in results)
    pair.report(Row("import after PyTensor's", "", milliseconds, " ms", ceiling=50))
