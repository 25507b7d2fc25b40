"""The section about ops: its record with its text and HTML."""

from __future__ import annotations

from pytensor_fuse._audit.sections.ops.record import OpsRecord
from pytensor_fuse._reports.tables import paragraphs, table
from pytensor_fuse._reports.text import bounded, count


class OpsSection(OpsRecord):
    """The section about ops; see `OpsRecord` for its attributes."""

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
