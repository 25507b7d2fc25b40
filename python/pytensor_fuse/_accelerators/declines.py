"""Node rewriters are not tried on nodes whose inputs show that it would be in vain.

The loops of `rewriter_loops` ask for that; with those of PyTensor's it changes nothing, but for
`local_useless_composite_outputs`, which also has to know who reads the node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.rewriting.elemwise import local_useless_composite_outputs

from pytensor_fuse._pytensor import declines
from pytensor_fuse._pytensor.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return Together(
        [
            DropIn(declines, "in_use", declines.table()),
            DropIn(local_useless_composite_outputs, "fn", declines.useless_outputs),
        ]
    )
