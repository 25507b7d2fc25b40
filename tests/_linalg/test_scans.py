"""The steps of a Scan are rewritten by the same rules as the graph around it."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.scan.op import Scan
from pytensor.tensor.linalg import inv, slogdet

from support.linalg.rules import compile_both

YS, NOISE = pt.dmatrix("ys"), pt.dscalar("noise")


def step(y, variance, noise):
    """Update the variance of a state, and return a function of the inverse of another."""
    innovation = variance + noise * pt.eye(2)
    precision = inv(innovation)
    density = -0.5 * (y @ precision @ y + slogdet(innovation)[1]) + pt.tanh(precision).sum()
    return variance - variance @ precision @ variance + 0.1 * pt.eye(2), density


def inner_ops(function):
    """Return the names of the ops on matrices in the steps of the scans."""
    names = set()
    for node in function.maker.fgraph.apply_nodes:
        if isinstance(node.op, Scan):
            inner = node.op.fn.maker.fgraph if hasattr(node.op, "_fn") else node.op.fgraph
            for one in inner.apply_nodes:
                names.add(type(getattr(one.op, "core_op", one.op)).__name__)
    return names


def test_rules_reach_the_steps():
    _, densities = pytensor.scan(
        step,
        sequences=[YS],
        outputs_info=[np.eye(2), None],
        non_sequences=[NOISE],
        return_updates=False,
    )
    ours, stock = compile_both([YS, NOISE], densities.sum())
    values = [np.random.default_rng(0).normal(size=(4, 2)), 0.5]
    np.testing.assert_allclose(ours(*values), stock(*values), rtol=1e-12)
    assert {"LUFactor", "LUInverse"} <= inner_ops(ours)
    assert "MatrixInverse" in inner_ops(stock)
    assert "MatrixInverse" not in inner_ops(ours)
