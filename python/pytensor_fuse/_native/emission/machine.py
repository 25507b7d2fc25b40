"""Properties of a processor that determine how loops are emitted."""

from __future__ import annotations

from typing import NamedTuple


class Machine(NamedTuple):
    """A processor, as far as the text depends on it.

    Attributes
    ----------
    vector_bits
        The width of its vectors, in bits.
    has_masks
        Whether it has masked loads and stores.
    has_fma
        Whether it has fused multiply-add.
    """

    vector_bits: int
    has_masks: bool
    has_fma: bool

    @property
    def lanes(self) -> int:
        """The number of doubles in a vector."""
        return self.vector_bits // 64

    def lanes_for(self, extent: int | None) -> int:
        """Return the number of lanes of a loop's vectors, or 1 for none.

        A short loop of known extent gets no more lanes than one vector of all iterations needs.
        """
        if extent is None or extent >= self.lanes:
            return self.lanes
        return 1 << max(extent - 1, 0).bit_length()
