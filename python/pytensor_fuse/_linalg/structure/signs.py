"""Signs of real numbers by the form of their expressions, in exact arithmetic.

``exp`` is positive, even if a small value rounds to 0.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.scalar import basic as ps
from pytensor.scalar.math import Sigmoid, Softplus
from pytensor.tensor.basic import Alloc, AllocDiag, ExtractDiag, Join, MakeVector
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Sum
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import Subtensor

from pytensor_fuse._linalg.structure.matrices import scalar_op
from pytensor_fuse._pytensor.ops.versions_of_ops import reshapes

# All elements of the output are elements of the first input.
_VIEWS = (Alloc, DimShuffle, ExtractDiag, Reshape, SpecifyShape, Subtensor)

# The depth of a proof. A variable that is used twice is proved twice.
_DEPTH = 12

# Doubles hold all whole numbers up to this one.
_LARGEST_EXACT = 2**53


class Sign(IntEnum):
    """The known sign of all elements of a variable; larger values are stronger statements.

    A product has the smaller sign of its factors; a sum without unknown summands has the larger
    one.
    """

    UNKNOWN = 0
    NONNEGATIVE = 1
    # Nonnegative, and 0 only where an input of the graph is 0, as the square of a parameter.
    USUALLY_POSITIVE = 2
    POSITIVE = 3


def sign_of(variable: Any, depth: int = _DEPTH) -> Sign:
    """Return the known sign of the elements of a variable."""
    if isinstance(variable, Constant):
        return _sign_of_data(variable.data)
    number = number_of(variable)
    if number is not None:
        return _sign_of_data(np.asarray(number))
    if depth <= 0 or variable.owner is None or variable.type.numpy_dtype.kind != "f":
        # Integers overflow to the other sign.
        return Sign.UNKNOWN
    inputs = variable.owner.inputs
    op = variable.owner.op
    if isinstance(op, _VIEWS) or reshapes(op):
        return sign_of(inputs[0], depth - 1)
    if isinstance(op, AllocDiag):
        return min(sign_of(inputs[0], depth - 1), Sign.NONNEGATIVE)
    if isinstance(op, MakeVector):
        return _least(inputs, depth)
    if isinstance(op, Join):
        return _least(inputs[1:], depth)
    if isinstance(op, Sum):
        axes = range(inputs[0].type.ndim) if op.axis is None else op.axis
        shape = [inputs[0].type.shape[axis] for axis in axes]
        summand = sign_of(inputs[0], depth - 1)
        # An empty sum is 0.
        return summand if all(shape) else min(summand, Sign.NONNEGATIVE)
    return _sign_of_elements(variable, depth)


def sign_of_power(base: Any, exponent: float, depth: int = _DEPTH) -> Sign:
    """Return the known sign of a power with a constant exponent."""
    known = sign_of(base, depth)
    if exponent % 2 == 0 and is_usually_not_zero(base, depth):
        known = max(known, Sign.USUALLY_POSITIVE)
    elif exponent % 2 == 0 and exponent > 0:
        known = max(known, Sign.NONNEGATIVE)
    return _where_finite(known) if exponent < 0 else known


def is_usually_not_zero(variable: Any, depth: int = _DEPTH) -> bool:
    """Whether real numbers are 0 only where an input of the graph is."""
    if isinstance(variable, Constant):
        return bool(np.all(variable.data != 0))
    if variable.type.numpy_dtype.kind != "f" or depth <= 0:
        return False
    if variable.owner is None or sign_of(variable, depth) >= Sign.USUALLY_POSITIVE:
        return True
    op, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(op, DimShuffle | SpecifyShape) or isinstance(scalar_op(variable), ps.Neg):
        return is_usually_not_zero(inputs[0], depth - 1)
    if isinstance(scalar_op(variable), ps.Mul | ps.TrueDiv):
        return all(is_usually_not_zero(one, depth - 1) for one in inputs)
    return False


def number_of(variable: Any) -> float | None:
    """Return the value of a constant real number, with any axes of length 1; else None."""
    dtypes = []
    while variable.owner is not None and (
        isinstance(variable.owner.op, DimShuffle) or isinstance(scalar_op(variable), ps.Cast)
    ):
        dtypes.append(variable.type.numpy_dtype)
        [variable] = variable.owner.inputs
    if not isinstance(variable, Constant):
        return None
    data = np.asarray(variable.data)
    if data.size != 1 or any(dtype.kind not in "fiu" for dtype in (data.dtype, *dtypes)):
        return None
    for dtype in reversed(dtypes):
        if dtype.kind != "f" and data.dtype != dtype:
            # The result of a value that does not fit depends on the machine.
            return None
        data = data.astype(dtype)
    return float(data.item())


def whole_number_of(variable: Any) -> int | None:
    """Return the value of a constant whole number that a float holds exactly; else None."""
    number = number_of(variable)
    if number is None or not abs(number) <= _LARGEST_EXACT or not number.is_integer():
        return None
    return int(number)


def _sign_of_data(data: Any) -> Sign:
    if np.asarray(data).dtype.kind not in "fiub" or not np.all(np.isfinite(data)):
        return Sign.UNKNOWN
    if np.all(data > 0):
        return Sign.POSITIVE
    return Sign.NONNEGATIVE if np.all(data >= 0) else Sign.UNKNOWN


def _where_finite(known: Sign) -> Sign:
    """Return the sign of the reciprocal; that of 0 has none."""
    return known if known >= Sign.USUALLY_POSITIVE else Sign.UNKNOWN


def _least(variables: list[Any], depth: int) -> Sign:
    return min(sign_of(one, depth - 1) for one in variables)


def _sign_of_elements(variable: Any, depth: int) -> Sign:
    op, inputs = scalar_op(variable), variable.owner.inputs
    match op:
        case ps.Exp() | Softplus() | Sigmoid() | ps.Cosh():
            return Sign.POSITIVE
        case ps.Sqr() | ps.Abs():
            return sign_of_power(inputs[0], 2, depth - 1)
        case ps.Pow():
            return _sign_of_pow(inputs, depth)
        case ps.Mul():
            return _sign_of_product(inputs, depth)
        case ps.Sqrt() | ps.Log1p() | ps.Cast():
            return sign_of(inputs[0], depth - 1)
        case ps.Reciprocal():
            return _where_finite(sign_of(inputs[0], depth - 1))
        case ps.TrueDiv():
            over = _where_finite(sign_of(inputs[1], depth - 1))
            return min(sign_of(inputs[0], depth - 1), over)
        case ps.Add():
            signs = [sign_of(one, depth - 1) for one in inputs]
            return max(signs) if min(signs) > Sign.UNKNOWN else Sign.UNKNOWN
        case ps.ScalarMaximum():
            return max(sign_of(one, depth - 1) for one in inputs)
        case ps.ScalarMinimum():
            return _least(inputs, depth)
        case ps.Second():
            return sign_of(inputs[1], depth - 1)
        case ps.Switch():
            return _least(inputs[1:], depth)
        case ps.Clip():
            value, low, high = (sign_of(one, depth - 1) for one in inputs)
            return min(max(value, low), high)
    return Sign.UNKNOWN


def _sign_of_pow(inputs: list[Any], depth: int) -> Sign:
    base, exponent = inputs
    if sign_of(base, depth - 1) is Sign.POSITIVE:
        return Sign.POSITIVE
    power = number_of(exponent)
    if power is not None:
        # Any number to the power of 0 is 1, also 0.
        return sign_of_power(base, power, depth - 1) if power else Sign.POSITIVE
    return Sign.UNKNOWN


def _sign_of_product(factors: list[Any], depth: int) -> Sign:
    """Return the sign of a product, with pairs of equal factors as squares."""
    found = Sign.POSITIVE
    for factor in dict.fromkeys(factors):
        n = sum(one is factor for one in factors)
        if n > 1:
            found = min(found, sign_of_power(factor, 2, depth - 1))
        if n % 2:
            found = min(found, sign_of(factor, depth - 1))
    return found
