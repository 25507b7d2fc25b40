"""Where figures come from."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from importlib.util import find_spec

PACKAGES = ("pytensor", "pymc", "numba", "llvmlite", "numpy", "jax", "nutpie")


def machine(*, with_load: bool = True) -> str:
    """The machine, its load now, and the versions of what is installed."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES if find_spec(name))
    has_load = with_load and hasattr(os, "getloadavg")
    load = f", load {os.getloadavg()[0]:.1f}" if has_load else ""
    return (
        f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores{load}, "
        f"Python {platform.python_version()}, {versions}"
    )
