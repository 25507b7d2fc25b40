"""What passes of this package noted of a graph while they rewrote it, kept with what they made."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._joins.reports import JoinReport
    from pytensor_fuse._linalg.notes import PackedNotes

# Loaded by the first pass or rule that runs: a graph has no notes before that.
_JOINS = "pytensor_fuse._joins.reports"
_LINALG = "pytensor_fuse._linalg.notes"


class Notes(NamedTuple):
    """What was noted of a graph.

    Attributes
    ----------
    joins
        What became of each join; None if the pass did not run.
    linalg
        Of work on matrices; None if no rule ran.
    """

    joins: tuple[JoinReport, ...] | None
    linalg: PackedNotes | None

    @classmethod
    def of(cls, fgraph: FunctionGraph, numbers: Mapping[Variable[Any, Any], int]) -> Notes:
        """Take the notes of a graph, about variables by their numbers."""
        joins: Any = sys.modules.get(_JOINS)
        linalg: Any = sys.modules.get(_LINALG)
        reports = None if joins is None else joins.reports_of(fgraph)
        packed = None if linalg is None else linalg.pack_notes(fgraph, numbers)
        return cls(reports, packed)

    def put_into(self, fgraph: FunctionGraph, variables: Sequence[Variable[Any, Any]]) -> None:
        """Note the same of another graph, given its variables by their numbers."""
        if self.joins is not None:
            from pytensor_fuse._joins.reports import note_reports

            note_reports(fgraph, self.joins)
        if self.linalg is not None:
            from pytensor_fuse._linalg.notes import unpack_notes

            unpack_notes(fgraph, variables, self.linalg)
