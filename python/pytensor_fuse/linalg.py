"""Declarations of structure that the form of a matrix does not show.

>>> import pytensor.tensor as pt
>>> from pytensor_fuse.linalg import structured
>>> K = structured(pt.matrix("K"), symmetric=True, positive_definite=True)
"""

from pytensor_fuse._linalg.structured import structured

__all__ = ["structured"]
