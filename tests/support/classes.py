"""Every class of PyTensor that derives from a base."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import warnings
from collections.abc import Iterator
from types import ModuleType

import pytensor


def every_module() -> Iterator[ModuleType]:
    """Import all modules of PyTensor, except for backends that need other libraries."""
    skipped = ("jax", "pytorch", "mlx", ".bin", ".misc", "ipython")
    for found in pkgutil.walk_packages(pytensor.__path__, "pytensor."):
        if not any(part in found.name for part in skipped):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    yield importlib.import_module(found.name)
                except ImportError:  # A required package is not installed.
                    continue


@functools.cache
def every_class(base: type) -> list[type]:
    """Return the classes of PyTensor below a base, in the order in which they were found."""
    list(every_module())
    classes: list[type] = []
    pending = [base]
    while pending:
        for kind in type.__subclasses__(pending.pop()):
            if kind not in classes:
                classes.append(kind)
                pending.append(kind)
    return [kind for kind in classes if kind.__module__.startswith("pytensor.")]
