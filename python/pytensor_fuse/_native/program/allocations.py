"""Placement of the `Allocate` statements of buffers that are written before they are declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.program.model import Allocate
from pytensor_fuse._native.program.walking import accessed_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytensor_fuse._native.program.model import BufferId, Statement


def add_allocations(statements: list[Statement], latest: Mapping[BufferId, int]) -> None:
    """Insert an `Allocate` before the first statement that accesses each buffer, in one walk.

    Parameters
    ----------
    statements
        The outermost block, which is changed in place.
    latest
        For each buffer, the position of the statement before which it is allocated at the latest.
    """
    places = dict(latest)
    unmet = set(places)
    for number, statement in enumerate(statements):
        if not unmet:
            break
        for buffer in accessed_by(statement):
            if buffer in unmet:
                unmet.remove(buffer)
                places[buffer] = min(number, places[buffer])
    before: dict[int, list[Statement]] = {}
    for buffer, place in places.items():
        before.setdefault(place, []).append(Allocate(buffer))
    if not before:
        return
    old = list(statements)
    statements.clear()
    for number, statement in enumerate(old):
        statements += before.get(number, ())
        statements.append(statement)
    statements += before.get(len(old), ())
