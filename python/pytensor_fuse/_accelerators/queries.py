"""Queries: the passes of a mode are copied from a cached answer instead of made for each graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.compile.mode import optdb

from pytensor_fuse._pytensor import queries
from pytensor_fuse._pytensor.drop_ins import BoundDropIn

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return BoundDropIn(optdb, "query", queries.query)
