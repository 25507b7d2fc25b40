"""Functions of the feature `linalg` alone, and of stock PyTensor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytensor
from pytensor.compile.executor import Function
from pytensor.compile.mode import get_mode

import pytensor_fuse
from benchmarks.measuring.sides import unchecked
from support.switching import switched


@contextmanager
def only_linalg(ours: bool) -> Iterator[None]:
    """Have the feature on alone, or nothing of the package."""
    only = {name: ours and name == "linalg" for name in pytensor_fuse.status()}
    with pytensor_fuse.enabled(False), switched(**only):
        yield


def compiled(
    inputs: list[Any], outputs: list[Any], linker: str, *without: str, ours: bool
) -> Function:
    """Compile with the feature alone but for some of its rules, or by stock PyTensor."""
    with only_linalg(ours):
        mode = get_mode(linker).excluding(*without)
        return unchecked(pytensor.function(inputs, outputs, mode=mode))
