"""What a section of an audit is."""

from __future__ import annotations

from typing import Any, Protocol


class Section(Protocol):
    """A part of an audit."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""

    def lines(self) -> list[str]:
        """Return the lines of the text, most important first; their number is bounded."""

    def html(self) -> str:
        """Return the body of the section, without a heading, its texts escaped."""
