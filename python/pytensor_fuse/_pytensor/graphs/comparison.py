"""The attributes by which PyTensor's own classes compare themselves."""

from __future__ import annotations

import types
from typing import Any

from pytensor.graph.utils import MetaType

from pytensor_fuse._pytensor.compat.checks import is_known

# For each of PyTensor's own comparisons other than by ``__props__``, the attributes that it
# compares besides the class. `known_sources` lists the functions; a function that another release
# has rewritten may compare more.
COMPARED: dict[str, tuple[str, ...]] = {
    f"pytensor.{name}.__eq__": known
    for name, known in {
        "compile.builders.OpFromGraph": ("fgraph", "is_inline"),
        "compile.ops.FromFunctionOp": ("_FromFunctionOp__fn",),
        "conditional.op.IfElse": ("as_view", "n_outs"),
        "graph.null_type.NullType": (),
        "ifelse.IfElse": ("as_view", "n_outs"),
        "link.c.params_type.ParamsType": ("fields", "types"),
        "link.c.type.EnumType": ("ctype", "aliases"),
        "raise_op.ExceptionType": (),
        "scalar.basic.FixedLogicalComparison": ("output_types_preference", "bool"),
        "scalar.basic.LogicalComparison": ("output_types_preference", "bool"),
        "scalar.basic.ScalarOp": ("output_types_preference",),
        "scalar.basic.unary_out_lookup": ("tbl",),
        "scalar.math.GammaInc": (),
        "scalar.math.GammaIncC": (),
        "scalar.math.GammaL": (),
        "scalar.math.GammaU": (),
        "scan.op.Scan": ("fgraph", "info", "profile", "truncate_gradient", "name", "allow_gc"),
        "sparse.type.SparseTensorType": ("dtype", "shape", "format"),
        "tensor.elemwise.Elemwise": ("scalar_op", "inplace_pattern"),
        "tensor.optimize.ScipyWrapperOp": ("fgraph",),
        "tensor.random.type.RandomGeneratorType": (),
        "tensor.type.TensorType": ("dtype", "shape"),
        "tensor.type_other.SliceType": (),
        "typed_list.type.TypedListType": ("ttype",),
        "utils.Singleton": (),
        "xtensor.random.type.XRandomGeneratorType": (),
        "xtensor.type.XTensorType": ("dtype", "shape", "dims"),
    }.items()
}


def compared(kind: type) -> tuple[str, ...] | None:
    """Return the attributes that the class compares besides the class; None if unknown.

    They are known for the functions in `COMPARED` and for those that PyTensor's metaclass makes
    from ``__props__``.
    """
    equality: Any = kind.__eq__
    if not isinstance(equality, types.FunctionType):
        return None
    if equality.__module__ == MetaType.__module__ and equality.__qualname__.startswith("MetaType."):
        if not is_known(MetaType.__new__, MetaType.__module__, "MetaType.__new__"):
            return None
        owner = next(base for base in kind.__mro__ if "__eq__" in base.__dict__)
        return tuple(owner.__dict__["__props__"])
    module, path = equality.__module__, equality.__qualname__
    attributes = COMPARED.get(f"{module}.{path}")
    return attributes if attributes is not None and is_known(equality, module, path) else None


# An OpFromGraph compares the values that these return when they are called.
COMPARED_BY_CALLING = ("pullback_overrides", "pushforward_overrides")


def also_compared(value: object) -> tuple[str, ...]:
    """Return the attributes that distinguish this op from others, besides those of its class.

    PyTensor 3.3 has ops that name them, 3.0 lets an OpFromGraph read shared variables, and neither
    compares whether the last output of a ScalarLoop ends the loop.
    """
    names: tuple[str, ...] = getattr(value, "_scipy_props", ())
    more = [name for name in ("shared_inputs", "is_while") if getattr(value, name, None)]
    return (*names, *more)
