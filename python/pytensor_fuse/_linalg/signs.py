"""Which variables are positive by the form in which they are written.

Whatever the inputs are, as long as they are not NaN: an exponential, a square plus a positive
number. Only forms that are certain count. Rounding may still make a 0 of an exponential of less
than -745.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import (
    Abs,
    Add,
    Cast,
    Cosh,
    Exp,
    Maximum,
    Minimum,
    Mul,
    Pow,
    Reciprocal,
    Second,
    Sqr,
    Sqrt,
    Switch,
    TrueDiv,
)
from pytensor.scalar.math import Sigmoid, Softplus
from pytensor.tensor.basic import Alloc, AllocDiag, ExtractDiag, Join, MakeVector
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Sum
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import Subtensor

from pytensor_fuse._linalg.matrices import same, scalar_op

# How deep a form is followed.
_DEPTH: Final = 20

# Their first input has all of their elements.
_VIEWS: Final = (
    Alloc,
    DimShuffle,
    ExtractDiag,
    JoinDims,
    Reshape,
    SpecifyShape,
    SplitDims,
    Subtensor,
)


def is_positive(variable: Any, depth: int = _DEPTH) -> bool:
    """Whether all elements are above 0, and not at it."""
    if isinstance(variable, Constant):
        return _is_real(variable) and bool(np.all(variable.data > 0))
    inputs = _inputs(variable, depth)
    if inputs is not None:
        return all(is_positive(one, depth - 1) for one in inputs)
    op = scalar_op(variable)
    if op is None or depth == 0 or not _is_real(variable):
        return False
    inputs = variable.owner.inputs
    if isinstance(op, Exp | Softplus | Sigmoid | Cosh):
        return True
    if isinstance(op, Add):
        at_least = all(is_nonnegative(one, depth - 1) for one in inputs)
        return at_least and any(is_positive(one, depth - 1) for one in inputs)
    if isinstance(op, Mul | TrueDiv | Sqr | Sqrt | Abs | Reciprocal | Minimum):
        return all(is_positive(one, depth - 1) for one in inputs)
    if isinstance(op, Pow):
        return is_positive(inputs[0], depth - 1)
    return isinstance(op, Maximum) and any(is_positive(one, depth - 1) for one in inputs)


def is_nonnegative(variable: Any, depth: int = _DEPTH) -> bool:
    """Whether no element is below 0."""
    if isinstance(variable, Constant):
        return _is_real(variable) and bool(np.all(variable.data >= 0))
    if is_positive(variable, depth):
        return True
    inputs = _inputs(variable, depth)
    if inputs is not None:
        return all(is_nonnegative(one, depth - 1) for one in inputs)
    if depth and variable.owner is not None and isinstance(variable.owner.op, AllocDiag | Sum):
        return is_nonnegative(variable.owner.inputs[0], depth - 1)
    op = scalar_op(variable)
    if op is None or depth == 0 or not _is_real(variable):
        return False
    inputs = variable.owner.inputs
    if isinstance(op, Sqr | Abs | Sqrt):
        return True
    if isinstance(op, Mul):
        return _is_product_nonnegative(list(inputs), depth)
    if isinstance(op, Add | TrueDiv | Minimum):
        return all(is_nonnegative(one, depth - 1) for one in inputs)
    if isinstance(op, Pow):
        base, power = inputs
        while power.owner is not None and isinstance(power.owner.op, DimShuffle):
            [power] = power.owner.inputs
        is_even = isinstance(power, Constant) and bool(np.all(power.data % 2 == 0))
        return is_even or is_nonnegative(base, depth - 1)
    return isinstance(op, Maximum) and any(is_nonnegative(one, depth - 1) for one in inputs)


def _is_product_nonnegative(factors: list[Any], depth: int) -> bool:
    """Whether the factors are, or come in pairs."""
    while factors:
        factor = factors.pop()
        at = next((i for i, other in enumerate(factors) if same(factor, other)), None)
        if at is not None:
            del factors[at]
        elif not is_nonnegative(factor, depth - 1):
            return False
    return True


def _inputs(variable: Any, depth: int) -> list[Any] | None:
    """Return the inputs whose elements are those of a variable; None if it computes others."""
    node = variable.owner
    if node is None or depth == 0 or not _is_real(variable):
        return None
    if isinstance(node.op, _VIEWS):
        return list(node.inputs[:1])
    if isinstance(node.op, MakeVector):
        return list(node.inputs)
    if isinstance(node.op, Join):
        return [one for one in node.inputs if one.type.ndim == variable.type.ndim]
    op = scalar_op(variable)
    if isinstance(op, Cast):
        return list(node.inputs) if _is_real(node.inputs[0]) else None
    if isinstance(op, Switch | Second):
        return list(node.inputs[1:])
    return None


def _is_real(variable: Any) -> bool:
    return variable.type.numpy_dtype.kind in "fiu"
