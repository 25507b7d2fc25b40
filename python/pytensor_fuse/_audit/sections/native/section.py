"""The section about machine code: its record with its text and HTML."""

from __future__ import annotations

from pytensor_fuse._audit.sections.native.record import NativeRecord
from pytensor_fuse._reports.tables import paragraphs, table
from pytensor_fuse._reports.text import bounded


class NativeSection(NativeRecord):
    """The section about machine code; see `NativeRecord` for its attributes."""

    def lines(self) -> list[str]:
        """Return the lines of the text; their number is bounded."""
        return [self.state.value, *(f"  {line}" for line in bounded(self.not_native, str, "more"))]

    def html(self) -> str:
        """Return the body of the section."""
        rows = [(one.name, one.why) for one in self.not_native]
        return paragraphs([self.state.value]) + (table(("node", "why"), rows) if rows else "")
