"""The section about Numba's cache: its record with its text and HTML."""

from __future__ import annotations

from pytensor_fuse._audit.sections.cache.record import CachingRecord
from pytensor_fuse._reports.tables import paragraphs, table
from pytensor_fuse._reports.text import bounded, place


class CachingSection(CachingRecord):
    """The section about Numba's cache; see `CachingRecord` for its attributes."""

    def lines(self) -> list[str]:
        """Return the lines of the text; their number is bounded."""
        culprits = bounded(self.culprits, str, "of these")
        return [self._summary(), *(f"  {line}" for line in culprits)]

    def html(self) -> str:
        """Return the body of the section."""
        rows = [(place(c.path, c.name), c.why) for c in self.culprits]
        listed = table(("node", "why"), rows) if rows else ""
        return paragraphs([self._summary()]) + listed

    def _summary(self) -> str:
        if not self.numba:
            return "not compiled by Numba"
        if self.cacheable:
            return "other processes can load what Numba compiles"
        if not self.has_key and not self.enabled:
            return "PyTensor's numba__cache is off: each process compiles the function anew"
        unknown = "" if self.culprits else ", for a reason that its graph does not show"
        return f"each process compiles the function anew{unknown}"
