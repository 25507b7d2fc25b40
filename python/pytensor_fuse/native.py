"""Public interface of machine code: rules for third-party ops, and functions for callers in C.

`compile_c` returns a compiled function as a C function, and `export_c` writes it as a library that
needs no Python.

A rule takes the op, its apply node, the `Context` of the lowering and a `Tensor` for each input,
and returns a `Tensor` for each output. `lower` registers it for a class of ops, in the style of
PyTensor's back ends:

>>> import numpy as np
>>> import pytensor
>>> import pytensor.tensor as pt
>>> from pytensor.graph.basic import Apply
>>> from pytensor.graph.op import Op
>>> from pytensor_fuse.native import lower
>>> class Doubled(Op):
...     __props__ = ()
...
...     def make_node(self, x):
...         x = pt.as_tensor_variable(x)
...         return Apply(self, [x], [x.type()])
...
...     def perform(self, node, inputs, outputs):
...         outputs[0][0] = 2 * inputs[0]
>>> @lower.register(Doubled)
... def doubled(op, node, context, inputs):
...     builder, [x] = context.builder, inputs
...     two = builder.constant(x.dtype, 2.0)
...     return [
...         context.materialized(x.dtype, x.lengths, lambda i: builder.op("mul", two, x.at(i)))
...     ]
>>> x = pt.vector("x")
>>> f = pytensor.function([x], Doubled()(x).sum(), mode="NATIVE")
>>> f(np.array([1.0, 2.0]))
array(6.)

The guide on machine code documents the scope of rules.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from pytensor_fuse._native.lowering import rules
from pytensor_fuse._native.lowering.context import Context
from pytensor_fuse._native.lowering.registry import Lowering, NoRuleError, RuleError, lower
from pytensor_fuse._native.lowering.tensors import Tensor, scalar, stored, view
from pytensor_fuse._native.program.blocks import Loop
from pytensor_fuse._native.program.builder import Builder

if TYPE_CHECKING:
    from pytensor_fuse._native.c_entry.entry import CEntry, compile_c
    from pytensor_fuse._native.c_entry.export import CExport, export_c
    from pytensor_fuse._native.c_entry.function import CArray

# The import registers this package's own rules before third-party ones.
_RULES = rules

__all__ = [
    "Builder",
    "CArray",
    "CEntry",
    "CExport",
    "Context",
    "Loop",
    "Lowering",
    "NoRuleError",
    "RuleError",
    "Tensor",
    "compile_c",
    "export_c",
    "lower",
    "scalar",
    "stored",
    "view",
]

# These import LLVM, for which authors of rules need not wait.
_HOMES = {
    "CArray": "_native.c_entry.function",
    **dict.fromkeys(("CEntry", "compile_c"), "_native.c_entry.entry"),
    **dict.fromkeys(("CExport", "export_c"), "_native.c_entry.export"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"pytensor_fuse.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
