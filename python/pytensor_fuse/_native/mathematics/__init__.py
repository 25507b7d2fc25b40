"""Mathematical functions of vectors as LLVM text.

An algorithm is written once, in Python, and yields the scalar form and all vector forms: an element
has the same bits in each of them. Vector forms are free of branches, except for rare paths that all
lanes take together.
"""

from pytensor_fuse._native.mathematics.functions import FORMS, FUNCTIONS, Function
from pytensor_fuse._native.mathematics.requested import (
    ELEMENTS,
    LANES,
    definitions,
    definitions_and_declarations,
    symbol,
)
from pytensor_fuse._native.mathematics.target import Target

__all__ = [
    "ELEMENTS",
    "FORMS",
    "FUNCTIONS",
    "LANES",
    "Function",
    "Target",
    "definitions",
    "definitions_and_declarations",
    "symbol",
]
