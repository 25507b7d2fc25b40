"""The section about ops: its findings, as text and as HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor_fuse._reports.entries import plain_fields
from pytensor_fuse._reports.tables import paragraphs, table
from pytensor_fuse._reports.text import bounded, count

if TYPE_CHECKING:
    from pytensor_fuse._audit.sections.ops.record import OpKind, UnknownOp


@dataclass(frozen=True)
class OpsSection:
    """The ops of a graph.

    Attributes
    ----------
    nodes
        The number of apply nodes, including inner graphs; a kernel counts as one.
    inner_nodes
        The number of those in inner graphs.
    kinds
        The number of nodes of each kind, the most frequent first. Each node has one kind.
    unknown
        The unknown ops, the most frequent first.
    """

    nodes: int
    inner_nodes: int
    kinds: dict[OpKind, int]
    unknown: tuple[UnknownOp, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the findings in plain types, as in JSON."""
        return plain_fields(self)

    def lines(self) -> list[str]:
        """Return the lines of the text; their number is bounded."""
        kinds = ", ".join(f"{n:,} {kind.value}" for kind, n in self.kinds.items())
        inner = f", {self.inner_nodes:,} of them in inner graphs" if self.inner_nodes else ""
        summary = f"{count(self.nodes, 'node')}{inner}" + (f": {kinds}" if kinds else "")
        return [*bounded(self.unknown, str, "unknown ops"), summary]

    def html(self) -> str:
        """Return the body of the section."""
        most = max(self.kinds.values(), default=1)
        text = paragraphs(self.lines()[:-1])
        if self.kinds:
            text += table(
                ("kind", "nodes"),
                [(kind.value, f"{n:,}") for kind, n in self.kinds.items()],
                numbers=(1,),
                bars=[n / most for n in self.kinds.values()],
            )
        return text
