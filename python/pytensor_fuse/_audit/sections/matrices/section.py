"""The section of an audit about matrices: its record, which shows itself as prose and as HTML."""

from __future__ import annotations

from pytensor_fuse._audit.sections.matrices import html, text
from pytensor_fuse._audit.sections.matrices.record import MatricesRecord


class MatricesSection(MatricesRecord):
    """What an audit found about matrices; `MatricesRecord` says what its attributes are."""

    def lines(self) -> list[str]:
        """Return the lines of the text; their number is bounded."""
        return text.lines(self)

    def html(self) -> str:
        """Return the body of the section."""
        return html.html(self)
