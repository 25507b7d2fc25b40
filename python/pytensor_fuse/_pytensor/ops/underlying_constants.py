"""Whether a variable is a constant beneath broadcasting and arithmetic, in PyTensor's sense.

Rewriters test this for each input of the nodes they are tried on. Nearly all inputs are no
constants, as the op that computes them shows.
"""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any, Final

import numpy as np
from pytensor.compile.ops import DeepCopyOp, TypeCastingOp
from pytensor.graph.basic import Constant
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar import basic as ps
from pytensor.tensor import basic
from pytensor.tensor.basic import Alloc, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.exceptions import NotScalarConstantError
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorConstant, TensorVariable

from pytensor_fuse._pytensor.ops import sparse_data

# The answers for a class of ops: there is no constant beneath; it depends on the first input; it
# depends on more; or it depends on the scalar op of an Elemwise.
_NOTHING, _FIRST_INPUT, _MORE, _ELEMWISE = range(4)

_THROUGH: Final = (DimShuffle, Alloc)
_ASKED: Final = (
    *(TypeCastingOp, DeepCopyOp, Shape_i, ScalarFromTensor, TensorFromScalar, CheckAndRaise),
    *(ps.ScalarOp, Elemwise, Subtensor, *_THROUGH),
)
# As in `_get_underlying_scalar_constant_value`; the ops of sparse matrices by name.
_FOLDED: Any = basic._scalar_constant_value_elemwise_ops
_SPARSE: Final = "CSM"

_kinds: dict[type, int] = {Elemwise: _ELEMWISE, **dict.fromkeys(_THROUGH, _FIRST_INPUT)}
_MANY: Final = 4096


def _kind_of(class_: type) -> int:
    is_asked = issubclass(class_, _ASKED) or any(
        base.__name__ == _SPARSE for base in class_.__mro__
    )
    if len(_kinds) < _MANY:
        _kinds[class_] = _MORE if is_asked else _NOTHING
    return _MORE if is_asked else _NOTHING


def hides_no_constant(v: Any, elemwise: bool = True, max_steps: int = 10) -> bool:
    """Whether PyTensor finds no constant beneath ``v``; False if a full search is needed.

    Notes
    -----
    ``max_steps`` is PyTensor's ``max_recur``, which bounds the time.
    """
    while True:
        node = v.owner
        if node is None:
            return not isinstance(v, Constant)
        if max_steps <= 0:
            return True
        max_steps -= 1
        op = node.op
        class_ = type(op)
        kind = _kinds.get(class_)
        if kind is None:
            kind = _kind_of(class_)
        if kind == _FIRST_INPUT:
            v = node.inputs[0]
        elif kind == _ELEMWISE:
            scalar_op = op.scalar_op
            if isinstance(scalar_op, ps.Second):
                v = node.inputs[1]
            elif elemwise and isinstance(scalar_op, _FOLDED):
                for i in node.inputs:
                    if not isinstance(i, Constant):
                        return hides_no_constant(i, True, max_steps)
                return False
            else:
                return True
        else:
            return kind == _NOTHING


# The function that callers import by this name.
SEARCH: Any = basic._get_underlying_scalar_constant_value


def stock_search() -> FunctionType:
    """Return PyTensor's search, as a function that keeps its code while the other's is replaced.

    It does not import `pytensor.sparse` to see that an op is not sparse.
    """
    code: CodeType = SEARCH.__code__
    names = tuple([sparse_data.__name__ if n == sparse_data.PACKAGE else n for n in code.co_names])
    code = code.replace(co_names=names)
    return FunctionType(code, SEARCH.__globals__, SEARCH.__name__, SEARCH.__defaults__)


def search_imports_sparse() -> bool:
    """Whether the search, with its current code, imports `pytensor.sparse`."""
    return sparse_data.PACKAGE in SEARCH.__code__.co_names


def value_of(
    orig_v: Any, elemwise: Any = True, only_process_constants: Any = False, max_recur: Any = 10
) -> Any:
    """Do the same as `_get_underlying_scalar_constant_value` for tensors, or return None."""
    class_ = type(orig_v)
    if class_ is TensorVariable:
        if only_process_constants or hides_no_constant(orig_v, elemwise, max_recur):
            raise NotScalarConstantError()
    elif class_ is TensorConstant:
        type_ = orig_v.type
        if type(type_) is TensorType:
            if type_.ndim == 0:
                return np.array(orig_v.data, dtype=type_.dtype)
            if all(length == 1 for length in type_.shape):
                return np.array(orig_v.data, dtype=type_.dtype).squeeze()
            if 0 in type_.shape:
                return None
            value = orig_v.unique_value
            if value is None:
                raise NotScalarConstantError()
            return np.array(value)
    return None
