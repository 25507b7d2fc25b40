"""The properties of a processor that decide how loops are written."""

from __future__ import annotations

from typing import NamedTuple


class Machine(NamedTuple):
    """A processor, as far as the text depends on it.

    Attributes
    ----------
    vector_bits
        The width of its vectors.
    has_masks
        Whether it loads and stores some lanes of a vector.
    has_fma
        Whether it multiplies and adds in one step.
    """

    vector_bits: int
    has_masks: bool
    has_fma: bool

    @property
    def lanes(self) -> int:
        """The number of doubles in a vector."""
        return self.vector_bits // 64
