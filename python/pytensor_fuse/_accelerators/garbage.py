"""Garbage collection: full collections, which find nothing, are rare during a compilation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.compile import maker
from pytensor.graph.rewriting.basic import GraphRewriter

from pytensor_fuse._pytensor import sparse_collections
from pytensor_fuse._pytensor.drop_ins import AroundBody, DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return Together(
        [
            # Inner graphs are rewritten elsewhere, too.
            DropIn(GraphRewriter, "rewrite", sparse_collections.rewrite),
            AroundBody(vars(maker)["function"], sparse_collections.__name__),
        ]
    )
