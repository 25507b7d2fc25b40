"""Garbage: full collections are rare while a graph is rewritten, for they find nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.rewriting.basic import GraphRewriter

from pytensor_fuse._pytensor import sparse_collections
from pytensor_fuse._pytensor.drop_ins import DropIn

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return DropIn(GraphRewriter, "rewrite", sparse_collections.rewrite)
