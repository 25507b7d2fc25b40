"""Graphs and ops to freeze."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op


class Other(Op):
    """An op that is equal to no other."""

    __props__ = ("op",)

    def __init__(self, op):
        self.op = op

    def make_node(self, *inputs):
        raise NotImplementedError

    def perform(self, node, inputs, outputs):
        raise NotImplementedError


def applied(op, inputs, types):
    return Apply(op, inputs, [kind.make_variable() for kind in types])


def radon_like():
    """A log-density with gradient: broadcasting, indexing, reductions, a Cholesky."""
    x, index = pt.matrix("x"), pt.vector("index", dtype="int64")
    cov = pt.dot(x, x.T) + 3 * pt.eye(3)
    chol = pt.linalg.cholesky(cov)
    out = pt.sum(pt.log(pt.diag(chol))) + pt.sum(x[index] ** 2) + pt.sum(pt.exp(x).sum(axis=0))
    values = [np.arange(12.0).reshape(3, 4) / 10, np.array([0, 2, 2])]
    return [x, index], [out, pytensor.grad(out, x)], values


class Itself(Op):
    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0]
