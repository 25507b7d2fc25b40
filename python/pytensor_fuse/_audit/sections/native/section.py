"""The section about machine code: its findings, as text and as HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor_fuse._reports.entries import plain_fields
from pytensor_fuse._reports.tables import paragraphs, table
from pytensor_fuse._reports.text import bounded

if TYPE_CHECKING:
    from pytensor_fuse._native.explain.records import NativeState, NotNative


@dataclass(frozen=True)
class NativeSection:
    """The findings about machine code; `pytensor_fuse.explain` gives more details.

    Attributes
    ----------
    state
        The state of the graph.
    not_native
        The obstacles to machine code for the whole graph; empty for linkers other than Numba's,
        whose graphs are never compiled to it.
    """

    state: NativeState
    not_native: tuple[NotNative, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the findings in plain types, as in JSON."""
        return plain_fields(self)

    def lines(self) -> list[str]:
        """Return the lines of the text; their number is bounded."""
        return [self.state.value, *(f"  {line}" for line in bounded(self.not_native, str, "more"))]

    def html(self) -> str:
        """Return the body of the section."""
        rows = [(one.name, one.why) for one in self.not_native]
        return paragraphs([self.state.value]) + (table(("node", "why"), rows) if rows else "")
