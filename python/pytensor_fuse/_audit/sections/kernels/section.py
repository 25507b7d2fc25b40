"""The section about kernels: its record with its text and HTML."""

from __future__ import annotations

from pytensor_fuse._audit.sections.kernels import html, text
from pytensor_fuse._audit.sections.kernels.record import KernelsRecord


class KernelsSection(KernelsRecord):
    """The section about kernels; see `KernelsRecord` for its attributes."""

    def lines(self) -> list[str]:
        """Return the lines of the text; their number is bounded."""
        return text.lines(self)

    def html(self) -> str:
        """Return the body of the section."""
        return html.html(self)
