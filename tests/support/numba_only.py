"""Ops that Numba implements and this package has no rules for, so that Numba compiles them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch import basic


class NumbaInverse(Op):
    """The inverse of a matrix."""

    __props__ = ()

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.linalg.inv(inputs[0])


@basic.register_funcify_default_op_cache_key(NumbaInverse)
def numba_inverse_of_op(op, node, **kwargs):
    """Return the op's implementation, and a version for its key."""

    @basic.numba_njit
    def inverse(x):
        return np.linalg.inv(x)

    return inverse, 1


numba_inverse = NumbaInverse()


class NumbaMirrored(Op):
    """A vector in reverse order."""

    __props__ = ()

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0][::-1].copy()

    def pullback(self, inputs, outputs, output_grads):
        return [self(output_grads[0])]


@basic.register_funcify_default_op_cache_key(NumbaMirrored)
def numba_mirrored_of_op(op, node, **kwargs):
    """Return the op's implementation, and a version for its key."""

    @basic.numba_njit
    def mirrored(x):
        return x[::-1].copy()

    return mirrored, 1


numba_mirrored = NumbaMirrored()

# A line that imports this module in another process, which does not know the folder of tests.
IMPORT = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r});"
    " from support.numba_only import numba_inverse"
)
