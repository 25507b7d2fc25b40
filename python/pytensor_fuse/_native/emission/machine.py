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

    def lanes_for(self, extent: int | None) -> int:
        """Return how many lanes the vectors of a loop have, 1 for no vectors.

        Of a short loop that is known before, no more than it takes to have one vector of all.
        """
        if extent is None or extent >= self.lanes:
            return self.lanes
        return 1 << max(extent - 1, 0).bit_length()
