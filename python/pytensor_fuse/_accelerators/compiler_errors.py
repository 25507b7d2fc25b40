"""Compiler errors: linking does not import modules that only a compilation in C needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._pytensor.compiler_errors import DeferredErrors

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return DeferredErrors()
