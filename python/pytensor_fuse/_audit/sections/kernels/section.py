"""The section of an audit about kernels: its record, which shows itself as prose and as HTML."""

from __future__ import annotations

from pytensor_fuse._audit.sections.kernels import html, text
from pytensor_fuse._audit.sections.kernels.record import KernelsRecord


class KernelsSection(KernelsRecord):
    """What an audit found about kernels; `KernelsRecord` says what its attributes are."""

    def lines(self) -> list[str]:
        """Return the lines of the text; their number is bounded."""
        return text.lines(self)

    def html(self) -> str:
        """Return the body of the section."""
        return html.html(self)
