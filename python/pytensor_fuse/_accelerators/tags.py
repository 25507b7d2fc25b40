"""Tags of nodes and variables: attribute access without Python code, and cheap copies.

`Scratchpad` overrides ``__getattribute__`` for Mypy with a method that does the same as `object`'s;
each ``node.tag.trace`` calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.utils import Scratchpad

from pytensor_fuse._pytensor.drop_ins import AddedMethod, DropIn, Together
from pytensor_fuse._pytensor.tags import copy_tag

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return Together(
        [
            DropIn(Scratchpad, "__getattribute__", object.__getattribute__),
            AddedMethod(Scratchpad, "__copy__", copy_tag),
        ]
    )
