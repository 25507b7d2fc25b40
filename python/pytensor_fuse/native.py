"""Rules that make machine code of ops: for those who have ops of their own.

A rule takes the op, its apply node, a `Context` to write with and a `Tensor` for each input, and
returns a `Tensor` for each output. `lower` registers it for a class of ops, as PyTensor's back-ends
register what they do for one:

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

The guide on machine code says what a rule may do.
"""

from pytensor_fuse._native.lowering import rules
from pytensor_fuse._native.lowering.context import Context
from pytensor_fuse._native.lowering.registry import Lowering, NoRuleError, RuleError, lower
from pytensor_fuse._native.lowering.tensors import Tensor, scalar, stored, view
from pytensor_fuse._native.program.blocks import Loop
from pytensor_fuse._native.program.builder import Builder

# What is imported by this is registered: rules of others come after those of this package.
_RULES = rules

__all__ = [
    "Builder",
    "Context",
    "Loop",
    "Lowering",
    "NoRuleError",
    "RuleError",
    "Tensor",
    "lower",
    "scalar",
    "stored",
    "view",
]
