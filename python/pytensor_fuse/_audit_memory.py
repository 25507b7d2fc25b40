"""The part of an audit about memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor_fuse._audit_graph import GraphContext


@dataclass(frozen=True)
class MemorySection:
    """What the audit found about memory."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {}

    def lines(self) -> list[str]:
        """Return the lines of the text."""
        return []

    def html(self) -> str:
        """Return the body of the section."""
        return ""


def audit_memory(context: GraphContext) -> MemorySection:
    """Audit memory."""
    return MemorySection()
