"""Where figures come from."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from importlib.util import find_spec

PACKAGES = ("pytensor", "pymc", "numba", "llvmlite", "numpy", "jax", "nutpie")


def machine() -> str:
    """The machine, its load, and the versions of what is installed."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES if find_spec(name))
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores{load}, "
        f"Python {platform.python_version()}, {versions}"
    )
