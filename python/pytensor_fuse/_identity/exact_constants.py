"""Patch that makes PyTensor's own comparisons of constants exact while the package is on.

PyTensor interns the nodes of inner graphs, including those of Composites, by the signatures of the
constants that they read. These signatures treat 0.0 and -0.0 as equal, and any two NaNs: if one
process compiles the kernels `arctan2(x, 0.0)` and `arctan2(x, -0.0)`, the second gets the code of
the first. No pass of this package runs in between, so the patch replaces the equality of
signatures. Their hashes stay as they are and remain consistent with the stricter equality, so
existing tables stay valid.
"""

from __future__ import annotations

from typing import Any

from pytensor.scalar.basic import ScalarConstantSignature
from pytensor.tensor.variable import TensorConstantSignature

from pytensor_fuse._identity.contents import data_content
from pytensor_fuse._pytensor.patching.patches import ReplacedAttributes


def exact_signatures() -> ReplacedAttributes:
    """Return the patch that compares signatures of constants bit for bit."""
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
