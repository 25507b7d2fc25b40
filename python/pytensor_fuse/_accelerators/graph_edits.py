"""Edits of graphs: no copy of all variables for each import, and no calls of empty callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.fg import FunctionGraph

from pytensor_fuse._pytensor import graph_edits
from pytensor_fuse._pytensor.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return Together(
        DropIn(FunctionGraph, name, getattr(graph_edits, name))
        for name in ("execute_callbacks", "import_node", "remove_client", "remove_feature")
    )
