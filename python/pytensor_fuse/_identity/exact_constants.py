"""Makes PyTensor's own comparisons of constants exact while the package is on.

PyTensor interns the nodes of inner graphs, those of Composites among them, by the signatures of the
constants that they read, and these take 0.0 for -0.0 and any NaN for any other: of two kernels in
one process, `arctan2(x, 0.0)` and `arctan2(x, -0.0)`, the second is compiled as the first. No pass
of ours is between, so it is the signatures that are made to differ, by their equality alone. Their
hashes stay, and hash equal where they are equal, so that tables that were filled before work on.
"""

from __future__ import annotations

from typing import Any

from pytensor.scalar.basic import ScalarConstantSignature
from pytensor.tensor.variable import TensorConstantSignature

from pytensor_fuse._identity.contents import data_content
from pytensor_fuse._pytensor.patches import ReplacedAttributes


def exact_signatures() -> ReplacedAttributes:
    """Return the patch that lets signatures of constants be equal only if these are bit for bit."""
    return ReplacedAttributes((ScalarConstantSignature, TensorConstantSignature), "__eq__", _equal)


def _equal(self: Any, other: Any) -> bool:
    if self is other:
        return True
    if type(self) is not type(other) or self[0] != other[0]:
        return False
    content = data_content(self[1])
    if content is None:
        return self[1] is other[1]
    return content == data_content(other[1])
