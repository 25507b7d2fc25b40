"""The directive ``accelerators``: a table of all accelerators, written from their records."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from pytensor_fuse._accelerators import NAMES, record_of


class Accelerators(SphinxDirective):
    """A row for each accelerator: its name, the functions it replaces, the work it leaves out."""

    def run(self) -> list[nodes.Node]:
        rows = ["| Name | Since PyTensor | Replaces | Leaves out |", "|---|---|---|---|"]
        for name in NAMES:
            one = record_of(name)
            since = ".".join(map(str, one.since)) if any(one.since) else "3.0"
            rows.append(f"| `{name}` | {since} | {_code(one.replaces)} | {one.skips} |")
        table = nodes.Element()
        self.state.nested_parse(StringList(rows, source="records"), self.content_offset, table)
        return table.children


def _code(text: str) -> str:
    """Set the names in a text as code: words with a dot, an underscore or an inner capital."""
    return re.sub(r"\b_?[A-Za-z]\w*(?:\.\w+)+|\b\w*_\w+|\b[A-Z]\w*[a-z][A-Z]\w*", r"`\g<0>`", text)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("accelerators", Accelerators)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
