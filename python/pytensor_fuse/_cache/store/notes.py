"""Notes of this package's passes about a graph, which are cached with the rewritten graph."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor_fuse._joins.notes import note_reports, reports_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._joins.reports import JoinReport
    from pytensor_fuse._linalg.notes import PackedNotes

# Loaded by the first rule that runs: a graph has no notes before that.
_LINALG = "pytensor_fuse._linalg.notes"


class Notes(NamedTuple):
    """The notes about a graph.

    Attributes
    ----------
    joins
        The report on each join; None if the pass did not run.
    linalg
        Notes about work on matrices; None if no rule ran.
    """

    joins: tuple[JoinReport, ...] | None
    linalg: PackedNotes | None

    @classmethod
    def of(cls, fgraph: FunctionGraph, numbers: Mapping[Variable[Any, Any], int]) -> Notes:
        """Take the notes of a graph, about variables by their numbers."""
        linalg: Any = sys.modules.get(_LINALG)
        packed = None if linalg is None else linalg.pack_notes(fgraph, numbers)
        return cls(reports_of(fgraph), packed)

    def put_into(self, fgraph: FunctionGraph, variables: Sequence[Variable[Any, Any]]) -> None:
        """Attach the notes to another graph, given its variables by their numbers."""
        if self.joins is not None:
            note_reports(fgraph, self.joins)
        if self.linalg is not None:
            from pytensor_fuse._linalg.notes import unpack_notes

            unpack_notes(fgraph, variables, self.linalg)
