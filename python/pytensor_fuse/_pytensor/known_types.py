"""Types of tensors, and of what Elemwise nodes give, remembered."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from pytensor.configdefaults import config
from pytensor.graph.basic import Apply
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorConstant, TensorVariable

from pytensor_fuse._pytensor.drop_ins import in_file_of

_stock_init: Any = TensorType.__init__
_stock_make_node: Any = Elemwise.make_node
_stock_get_output_info = Elemwise.get_output_info
_stock_make_scalar_node = Elemwise.make_scalar_node
_stock_scalar_make_node = ScalarOp.make_node

# The dtypes that a TensorType takes, as it writes them.
_DTYPES = {
    dtype: np.dtype(dtype) for dtype in TensorType.dtype_specs_map if str(np.dtype(dtype)) == dtype
}
_LENGTHS = (int, type(None))


def init_type(
    self: Any, dtype: Any, shape: Any = None, name: Any = None, broadcastable: Any = None
) -> None:
    """Do as `TensorType.__init__`, where dtype and lengths come as it keeps them."""
    if type(self) is TensorType and type(dtype) is str and broadcastable is None:
        numpy_dtype = _DTYPES.get(dtype)
        if numpy_dtype is not None and type(shape) in (tuple, list) and len(shape) <= 64:
            for length in shape:
                if type(length) not in _LENGTHS:
                    break
            else:
                self.dtype = dtype
                self.shape = shape = tuple(shape)
                self.broadcastable = tuple([length == 1 for length in shape])
                self.ndim = len(shape)
                self.name = name
                self.numpy_dtype = numpy_dtype
                return
    _stock_init(self, dtype, shape, name, broadcastable)


# What a node of an op gives, by the op's address and the types of its inputs; the op is kept so
# that no other gets its address. Threads may both enter the same.
_known: dict[tuple[Any, ...], tuple[Any, list[TensorType], int, Any]] = {}
_MANY = 4096


def make_node(self: Any, *inputs: Any) -> Apply[Any]:
    """Do as `Elemwise.make_node`, where the op has been seen with inputs of such types.

    That asks the scalar op for a node of scalars each time, which takes most of its time, and works
    out each length of the result. Both depend on the op, the dtypes and static shapes of the
    inputs, and how PyTensor is configured to cast.
    """
    if type(self) is not Elemwise:
        return cast("Apply[Any]", _stock_make_node(self, *inputs))
    key: list[Any] = [id(self), config.floatX, config.cast_policy]
    for i in inputs:
        if type(i) is not TensorVariable and type(i) is not TensorConstant:
            return _make_new(self, inputs)
        type_ = i.type
        if type(type_) is not TensorType:
            return _make_new(self, inputs)
        key.append(type_.dtype)
        key.append(type_.shape)
    known = _known.get(tuple(key))
    if (
        known is None
        or known[0] is not self
        or known[3] is not self.scalar_op
        or Elemwise.get_output_info is not _stock_get_output_info
        or not _is_plain(self)
    ):
        return _make_new(self, inputs, tuple(key))
    _, types, n_dims, _ = known
    args = []
    for i in inputs:
        length = i.type.ndim
        missing = n_dims - length
        args.append(i.dimshuffle(["x"] * missing + list(range(length))) if missing else i)
    return Apply(self, args, [type_() for type_ in types])


def _is_plain(op: Any) -> bool:
    """Whether an op makes nodes as its class does, and its scalar op, too."""
    own = vars(op)
    return (
        "get_output_info" not in own
        and "make_scalar_node" not in own
        and Elemwise.make_scalar_node is _stock_make_scalar_node
        and type(op.scalar_op).make_node is _stock_scalar_make_node
        and ScalarOp.make_node is _stock_scalar_make_node
        and _is_pytensors(type(op.scalar_op))
        and "make_node" not in vars(op.scalar_op)
        and "output_types" not in vars(op.scalar_op)
    )


def _is_pytensors(class_: type) -> bool:
    return class_.__module__.partition(".")[0] == "pytensor"


@in_file_of(_stock_make_node)
def _make_new(self: Any, inputs: Any, key: Any = None) -> Apply[Any]:
    node: Apply[Any] = _stock_make_node(self, *inputs)
    if key is not None and _is_plain(self):
        if len(_known) >= _MANY:
            _known.clear()
        types = [out.type for out in node.outputs]
        _known[key] = self, types, max(i.type.ndim for i in inputs), self.scalar_op
    return node
