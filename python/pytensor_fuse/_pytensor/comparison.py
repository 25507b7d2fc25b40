"""How PyTensor's own classes compare themselves: by which attributes."""

from __future__ import annotations

import types
from typing import Any

from pytensor.graph.utils import MetaType

from pytensor_fuse._pytensor.ground import fingerprint

# For each way in which PyTensor's own classes compare themselves, other than by ``__props__``, the
# attributes that it compares besides the class, and the fingerprints of the function that does: a
# function that another release has rewritten may compare more.
COMPARED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    f"pytensor.{name}.__eq__": known
    for name, known in {
        "compile.builders.OpFromGraph": (("fgraph", "is_inline"), ("3187bb35", "9db0b960")),
        "compile.ops.FromFunctionOp": (("_FromFunctionOp__fn",), ("3fee4043",)),
        "conditional.op.IfElse": (("as_view", "n_outs"), ("72730070",)),
        "graph.null_type.NullType": ((), ("8cde5729",)),
        "ifelse.IfElse": (("as_view", "n_outs"), ("72730070",)),
        "link.c.params_type.ParamsType": (("fields", "types"), ("7b55c230",)),
        "link.c.type.EnumType": (("ctype", "aliases"), ("322c9ee8",)),
        "raise_op.ExceptionType": ((), ("8cde5729",)),
        "scalar.basic.FixedLogicalComparison": (("output_types_preference", "bool"), ("4cf0d762",)),
        "scalar.basic.LogicalComparison": (("output_types_preference", "bool"), ("51f287de",)),
        "scalar.basic.ScalarOp": (("output_types_preference",), ("a8aaa93e",)),
        "scalar.basic.unary_out_lookup": (("tbl",), ("427c75df",)),
        "scalar.math.GammaInc": ((), ("8cde5729",)),
        "scalar.math.GammaIncC": ((), ("8cde5729",)),
        "scalar.math.GammaL": ((), ("8cde5729",)),
        "scalar.math.GammaU": ((), ("8cde5729",)),
        "scan.op.Scan": (
            ("fgraph", "info", "profile", "truncate_gradient", "name", "allow_gc"),
            ("c6bf0a41", "70478c36"),
        ),
        "sparse.type.SparseTensorType": (("dtype", "shape", "format"), ("63624cc7",)),
        "tensor.elemwise.Elemwise": (("scalar_op", "inplace_pattern"), ("40f6403f", "d080efcd")),
        "tensor.optimize.ScipyWrapperOp": (("fgraph",), ("85274ea4",)),
        "tensor.random.type.RandomGeneratorType": ((), ("8cde5729",)),
        "tensor.type.TensorType": (("dtype", "shape"), ("29f5193f",)),
        "tensor.type_other.SliceType": ((), ("8cde5729",)),
        "typed_list.type.TypedListType": (("ttype",), ("da72bc05",)),
        "utils.Singleton": ((), ("8cde5729",)),
        "xtensor.random.type.XRandomGeneratorType": ((), ("8cde5729",)),
        "xtensor.type.XTensorType": (("dtype", "shape", "dims"), ("21f84b53",)),
    }.items()
}


def compared(kind: type) -> tuple[str, ...] | None:
    """Return the attributes that the class compares besides the class, None if not known.

    That is one of `COMPARED`, or it was made by PyTensor's metaclass out of ``__props__``.
    """
    equality: Any = kind.__eq__
    if not isinstance(equality, types.FunctionType):
        return None
    if equality.__module__ == MetaType.__module__ and equality.__qualname__.startswith("MetaType."):
        owner = next(base for base in kind.__mro__ if "__eq__" in base.__dict__)
        return tuple(owner.__dict__["__props__"])
    attributes, fingerprints = COMPARED.get(
        f"{equality.__module__}.{equality.__qualname__}", (None, ())
    )
    return attributes if fingerprint(equality) in fingerprints else None


# An OpFromGraph compares what these compute, when they are called.
COMPARED_BY_CALLING = ("pullback_overrides", "pushforward_overrides")


def also_compared(value: object) -> tuple[str, ...]:
    """Return the attributes that tell this very op from others besides those of its class.

    PyTensor 3.3 has ops that name them, 3.0 lets an OpFromGraph read shared variables, and neither
    compares whether the last output of a ScalarLoop ends it.
    """
    names: tuple[str, ...] = getattr(value, "_scipy_props", ())
    more = [name for name in ("shared_inputs", "is_while") if getattr(value, name, None)]
    return (*names, *more)
