"""The interface of an audit's sections, and the layout of their code.

A section is a folder in `sections`:

- ``record.py``: the single findings, as plain classes. Each prints as a line.
- ``section.py``: all findings together, in prose and on a page.
- ``analysis.py``: makes the section from the context of the audit, with a module for each concept
  that it uses.

A field of `Audit` names a section and its constructor. Imports within a folder go up this list.
"""

from __future__ import annotations

from typing import Any, Protocol


class Section(Protocol):
    """A part of an audit."""

    def to_dict(self) -> dict[str, Any]:
        """Return the section in plain types, as in JSON."""

    def lines(self) -> list[str]:
        """Return the lines of the text, most important first; their number is bounded."""

    def html(self) -> str:
        """Return the body of the section, without a heading, its texts escaped."""
