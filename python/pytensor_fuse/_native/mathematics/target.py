"""Target description for the mathematical functions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A processor, as far as the text of the functions depends on it.

    Attributes
    ----------
    fma
        Whether it has a fused multiply-add. Without one, no function uses `llvm.fma`, which would
        call the C library's emulation.
    """

    fma: bool
