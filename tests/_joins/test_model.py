"""The packed gradient of a model, with the rewrite of joins and without it, against stock.

In Numba kernels that sum as well, compilers may round otherwise.
"""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from support.joins.against_stock import LINKERS, check, compiled, debug_mode, joined, mode_of
from support.joins.strategies import (
    JoinCase,
)

N_ROWS, N_GROUPS = 30, 4


def packed_gradient() -> tuple[list[Variable], list[Variable], list[list[np.ndarray]]]:
    """The packed gradient of a hierarchical regression: two scalars, two scales, three arrays."""
    theta = pt.vector("theta")
    group = pt.vector("group", dtype="int64")
    x, y = pt.vector("x"), pt.vector("y")
    shapes = [(), (), (2,), (N_GROUPS, 2), (N_ROWS,), (), ()]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes]).tolist()
    parameters = [
        theta[end - int(np.prod(shape)) : end].reshape(shape)
        for end, shape in zip(ends, shapes, strict=True)
    ]
    a, b, log_tau, z, effect, log_omega, log_sigma = parameters
    of_group = (z * pt.exp(log_tau))[group]
    mu = a + of_group[:, 0] + (b + of_group[:, 1]) * x + pt.exp(log_omega) * effect
    residual = (y - mu) * pt.exp(-log_sigma)
    logp = (
        -0.5 * pt.sqr(residual).sum()
        - N_ROWS * log_sigma
        - 0.5 * (pt.sqr(z).sum() + pt.sqr(effect).sum() + pt.sqr(a) + pt.sqr(b))
        - 0.5 * (pt.exp(2 * log_tau) - 2 * log_tau).sum()
        - 0.5 * (pt.exp(2 * log_omega) + pt.exp(2 * log_sigma))
        + log_omega
        + log_sigma
    )
    gradients = pytensor.grad(logp, parameters)
    calls = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        groups = rng.integers(N_GROUPS, size=N_ROWS)
        data = [rng.normal(size=N_ROWS) for _ in range(2)]
        calls.append([rng.normal(scale=0.3, size=ends[-1]), groups, *data])
    return [theta, group, x, y], [logp, joined([g.ravel() for g in gradients])], calls


@pytest.mark.parametrize("linker", LINKERS)
def test_packed_gradient(linker: str) -> None:
    inputs, outputs, calls = packed_gradient()
    rounding = 1e-12 if linker == "numba" else 0.0
    # Python rounds fused reciprocals to 32 bits.
    stock = mode_of("py").excluding("fusion") if rounding else None
    case = JoinCase(inputs, outputs, calls)
    function = check(case, linker, rounding=rounding, stock_linker=stock)
    values = calls[0]
    _, gradient = function(*values)
    direction = np.random.default_rng(9).normal(size=gradient.shape)
    step = 1e-6
    above, below = (function(values[0] + s * direction, *values[1:])[0] for s in (step, -step))
    np.testing.assert_allclose((above - below) / (2 * step), gradient @ direction, rtol=1e-5)


def test_packed_gradient_in_debug_mode() -> None:
    inputs, outputs, calls = packed_gradient()
    function = compiled(inputs, outputs, debug_mode(c_code=False))
    function(*calls[0])


def test_clones_compile_to_the_same_graph() -> None:
    inputs, outputs, _ = packed_gradient()
    described = []
    for _ in range(2):
        new = [inp.type(inp.name) for inp in inputs]
        copies = clone_replace(outputs, dict(zip(inputs, new, strict=True)))
        function = compiled(new, copies, "py")
        described.append([str(node.op) for node in function.maker.fgraph.toposort()])
    assert described[0] == described[1]
