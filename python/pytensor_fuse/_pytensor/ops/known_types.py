"""Cached types of tensors, and of the outputs of Elemwise nodes."""

from __future__ import annotations

import itertools
from typing import Any, cast

import numpy as np
from pytensor.configdefaults import config
from pytensor.graph.basic import Apply
from pytensor.scalar.basic import Composite, ScalarInnerGraphOp, ScalarOp
from pytensor.tensor import as_tensor_variable
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorConstant, TensorVariable, _tensor_py_operators

from pytensor_fuse._pytensor.compat.packages import is_pytensors
from pytensor_fuse._pytensor.patching.drop_ins import in_file_of

_stock_init: Any = TensorType.__init__
_stock_make_node: Any = Elemwise.make_node
_stock_get_output_info = Elemwise.get_output_info
_stock_make_scalar_node = Elemwise.make_scalar_node
_stock_scalar_make_node = ScalarOp.make_node
_stock_composite_make_node: Any = Composite.make_node

# The dtypes of a TensorType, in its spelling.
_DTYPES = {
    dtype: np.dtype(dtype) for dtype in TensorType.dtype_specs_map if str(np.dtype(dtype)) == dtype
}
# NumPy has one object for each of these dtypes; the name of any other one is computed.
_NAMES = {id(numpy_dtype): dtype for dtype, numpy_dtype in _DTYPES.items()}
_LENGTHS = (int, type(None))

_settings: Any = config._config_var_dict
_floatx, _cast_policy = _settings["floatX"], _settings["cast_policy"]


def _setting(parameter: Any) -> Any:
    """Return a setting, as its parameter caches it after the first access."""
    try:
        return parameter.val
    except AttributeError:
        return parameter.__get__(config, type(config))


# The ops that rearrange dimensions, by the number of dimensions and their new order.
_rearrangements: dict[tuple[Any, ...], DimShuffle] = {}
# The base class of variables of tensors.
OPERATORS: Any = _tensor_py_operators
_stock_dimshuffle: Any = OPERATORS.dimshuffle


def _rearranges(length: int, order: tuple[Any, ...]) -> DimShuffle:
    key = length, *order
    op = _rearrangements.get(key)
    if op is None:
        op = DimShuffle(input_ndim=length, new_order=order)
        if len(_rearrangements) >= _MANY:
            _rearrangements.clear()
        _rearrangements[key] = op
    return op


def dimshuffle(self: Any, *pattern: Any) -> Any:
    """Do the same as the method of that name, with one op for each new order."""
    if len(pattern) == 1 and type(pattern[0]) in (list, tuple):
        order = tuple(pattern[0])
    else:
        order = pattern
    for dimension in order:
        # Values that are equal to these may be printed differently.
        if type(dimension) is not int and type(dimension) is not str:
            return _stock_dimshuffle(self, *pattern)
    length = self.type.ndim
    op = _rearranges(length, order)
    if op.new_order == tuple(range(length)):
        return self
    return op(self)


@in_file_of(_stock_make_node)
def _expanded(variable: Any, length: int, missing: int) -> Any:
    return _rearranges(length, ("x",) * missing + tuple(range(length)))(variable)


def init_type(
    self: Any, dtype: Any, shape: Any = None, name: Any = None, broadcastable: Any = None
) -> None:
    """Do the same as `TensorType.__init__`, if dtype and lengths are in its canonical form."""
    if type(self) is TensorType and broadcastable is None:
        if type(dtype) is not str:
            # Equal dtypes are the same to NumPy, whatever their byte order.
            dtype = _NAMES.get(id(dtype), dtype)
        numpy_dtype = _DTYPES.get(dtype) if type(dtype) is str else None
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


class _Known:
    """Cached outputs of nodes, discarded when there are too many.

    Two threads may add the same entry.
    """

    def __init__(self) -> None:
        # Numbers of scalar ops with their in-place patterns, the same for equal ones. Each gradient
        # has new ops.
        self.equal: dict[tuple[Any, ...], int] = {}
        # By the address of an op: the op and its scalar op, which are kept so that no others get
        # their addresses; the number of the computation; and the dtypes that it applies to, if
        # others are computed differently.
        self.ops: dict[int, tuple[Any, Any, int, list[str] | None]] = {}
        # By that number, the settings, and the dtype and lengths of each input.
        self.types: dict[tuple[Any, ...], tuple[list[TensorType], int]] = {}
        self.numbers = itertools.count()


_MANY = 4096
_known = _Known()


def make_node(self: Any, *inputs: Any) -> Apply[Any]:
    """Do the same as `Elemwise.make_node`, if the op has been seen with inputs of such types.

    `Elemwise.make_node` asks the scalar op for a node of scalars each time, which takes most of the
    time, and computes each length of the result. Both depend on the op, the dtypes and static
    shapes of the inputs, and PyTensor's settings for casts.
    """
    if type(self) is not Elemwise:
        return cast("Apply[Any]", _stock_make_node(self, *inputs))
    all_known = _known
    op = all_known.ops.get(id(self))
    if op is None or op[0] is not self or op[1] is not self.scalar_op:
        if not _is_plain(self):
            return cast("Apply[Any]", _stock_make_node(self, *inputs))
        all_known, op = _enter(self)
    key: list[Any] = [op[2], _setting(_floatx), _setting(_cast_policy)]
    for i in inputs:
        if type(i) is not TensorVariable and type(i) is not TensorConstant:
            return _make_of_others(self, inputs)
        type_ = i.type
        if type(type_) is not TensorType:
            return cast("Apply[Any]", _stock_make_node(self, *inputs))
        key.append(type_.dtype)
        key.append(type_.shape)
    if not _is_plain(self) or (op[3] is not None and key[3::2] != op[3]):
        return cast("Apply[Any]", _stock_make_node(self, *inputs))
    known = all_known.types.get(tuple(key))
    if known is None:
        return _make_new(self, inputs, all_known, tuple(key))
    types, n_dims = known
    args = []
    for i in inputs:
        length = i.type.ndim
        missing = n_dims - length
        args.append(_expanded(i, length, missing) if missing else i)
    return Apply(self, args, [type_() for type_ in types])


@in_file_of(_stock_make_node)
def _make_of_others(self: Any, inputs: tuple[Any, ...]) -> Apply[Any]:
    """Make a node whose inputs include other objects than variables of tensors."""
    made = [
        i if type(i) in (TensorVariable, TensorConstant) else as_tensor_variable(i) for i in inputs
    ]
    if all(type(i) in (TensorVariable, TensorConstant) for i in made):
        return cast("Apply[Any]", self.make_node(*made))
    return cast("Apply[Any]", _stock_make_node(self, *made))


def _enter(op: Any) -> tuple[_Known, tuple[Any, Any, int, list[str] | None]]:
    """Note an op, and the number of its computation, which equal ops share."""
    global _known
    known = _known
    if len(known.ops) >= _MANY:
        _known = known = _Known()
    scalar_op = op.scalar_op
    number = next(known.numbers)
    dtypes = None
    overwrites = tuple(sorted(op.inplace_pattern.items()))
    if type(scalar_op) is Composite:
        # A Composite has its own output types if the inputs have its own dtypes. It converts other
        # inputs, or a new one is made for them.
        dtypes = [type_.dtype for type_ in scalar_op.inputs_type]
        gives = tuple(type_.dtype for type_ in scalar_op.outputs_type)
        number = known.equal.setdefault((*dtypes, Composite, gives, overwrites), number)
    elif not isinstance(scalar_op, ScalarInnerGraphOp):
        # Comparing ops with inner graphs is slow.
        number = known.equal.setdefault((scalar_op, overwrites), number)
    entry = known.ops[id(op)] = op, scalar_op, number, dtypes
    return known, entry


def _is_plain(op: Any) -> bool:
    """Whether an op makes nodes as its class does, and so does its scalar op."""
    own = vars(op)
    return (
        Elemwise.get_output_info is _stock_get_output_info
        and "get_output_info" not in own
        and "make_scalar_node" not in own
        and Elemwise.make_scalar_node is _stock_make_scalar_node
        and _makes_nodes_as_stock(type(op.scalar_op))
        and ScalarOp.make_node is _stock_scalar_make_node
        and is_pytensors(type(op.scalar_op))
        and "make_node" not in vars(op.scalar_op)
        and "output_types" not in vars(op.scalar_op)
    )


def _makes_nodes_as_stock(class_: Any) -> bool:
    stock = _stock_composite_make_node if class_ is Composite else _stock_scalar_make_node
    return class_.make_node is stock


@in_file_of(_stock_make_node)
def _make_new(self: Any, inputs: Any, known: _Known, key: Any) -> Apply[Any]:
    node: Apply[Any] = _stock_make_node(self, *inputs)
    if len(known.types) >= _MANY:
        known.types.clear()
    known.types[key] = [out.type for out in node.outputs], max(i.type.ndim for i in inputs)
    return node
