"""Tags of nodes and variables: attributes without a call of Python code, and cheap copies.

`Scratchpad` has a ``__getattribute__`` that does what `object`'s does, for the sake of Mypy; each
``node.tag.trace`` runs it.
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
