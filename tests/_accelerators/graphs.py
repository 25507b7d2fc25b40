"""Graphs that between them go through what accelerators change."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor import sparse
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.io import In, Out
from pytensor.raise_op import Assert

from support import graphs

try:
    from pytensor.conditional.op import ifelse
except ImportError:  # In PyTensor 3.0.
    from pytensor.ifelse import ifelse

Case = tuple[list[Any], list[Any], dict[str, Any]]

GRAPHS: dict[str, Callable[[], Case]] = {}


def graph(function: Callable[[], Case]) -> Callable[[], Case]:
    GRAPHS[function.__name__] = function
    return function


def _of(fgraph: Any) -> Case:
    return fgraph.inputs, fgraph.outputs, {}


@graph
def deep() -> Case:
    return _of(graphs.deep_small_kernels(12))


@graph
def large() -> Case:
    return _of(graphs.large_fuseable_graph(6))


@graph
def regression() -> Case:
    x, y = pt.matrix("x"), pt.vector("y")
    betas = [pt.scalar(f"b{i}") for i in range(6)]
    log_sigma, nu = pt.scalars("s", "nu")
    mean = sum((b * x[:, i] for i, b in enumerate(betas)), start=pt.zeros(()))
    residual = (y - mean) / pt.exp(log_sigma)
    logp = (pt.gammaln((nu + 1) / 2) - (nu + 1) / 2 * pt.log1p(residual**2 / nu)).sum()
    logp = logp - 0.5 * sum(pt.sqr(b / 2.5) for b in betas)
    return [x, y, *betas, log_sigma, nu], [logp, *pytensor.grad(logp, [*betas, log_sigma, nu])], {}


@graph
def gaussian_process() -> Case:
    x, y = pt.matrix("x"), pt.vector("y")
    length, eta, sigma = pt.scalars("l", "e", "s")
    d = pt.sqr(x[:, None, :] - x[None, :, :]).sum(-1)
    k = eta**2 * pt.exp(-0.5 * d / length**2) + sigma**2 * pt.eye(x.shape[0])
    factor = pt.linalg.cholesky(k)
    a = pt.linalg.solve_triangular(factor, y, lower=True)
    logp = -0.5 * (a**2).sum() - pt.log(pt.diag(factor)).sum()
    return [x, y, length, eta, sigma], [logp, *pt.grad(logp, [length, eta, sigma])], {}


@graph
def mixture() -> Case:
    w, mu, s = (pt.vector(name, shape=(3,)) for name in ("w", "mu", "s"))
    y = pt.vector("y")
    logs = -0.5 * ((y[:, None] - mu) / pt.exp(s)) ** 2 - s
    logp = pt.logsumexp(pt.special.log_softmax(w) + logs, axis=1).sum()
    return [w, mu, s, y], [logp, *pt.grad(logp, [w, mu, s])], {}


@graph
def canonical_forms() -> Case:
    x, y, z = pt.vectors("x", "y", "z")
    a, b = pt.scalars("a", "b")
    return (
        [x, y, z, a, b],
        [
            (a / x + b / y) * x * y,
            (a / x + b) * x,
            (x * 2.0 / y) * (y / (4 * z)),
            x / abs(x) * a - x + 3 - b + 2 * x,
            (x + y) * z / (x + y) + 0 * a,
            (2 * x + 3 * y - (x - 1)) * 0.5 * (a - b) / (a - b),
            pt.log(1 + pt.exp(x)) - pt.log(1 - pt.sigmoid(y)),
            pt.cast(pt.gt(x, 0) * pt.gt(y, 0), "int8") + pt.cast(x, "bool"),
        ],
        {},
    )


@graph
def products() -> Case:
    a, b, c = pt.matrices("a", "b", "c")
    v = pt.vector("v")
    s = pt.scalar("s")
    return [a, b, c, v, s], [c + s * (a @ b), c * 2 - a @ b, v + s * (a @ v), a @ b @ v], {}


@graph
def indexing() -> Case:
    x = pt.matrix("x")
    parts = [x[i] * (i + 1) for i in range(5)]
    total = sum(pt.exp(p).sum() for p in parts) + x[1:, 2].sum() + x[:, ::-1][0, 0]
    written = pt.set_subtensor(x[1], x[0] * 2)
    return [x], [pt.grad(total, x), pt.inc_subtensor(written[2, 1:], 3.0), x[[0, 2, 1]]], {}


@graph
def overwriting() -> Case:
    x, y = pt.vectors("x", "y")
    z = pt.exp(x) + y
    inputs = [In(x, mutable=True), In(y, borrow=True)]
    return inputs, [Out(z * 2, borrow=True), pt.sort(z)[::-1], z.reshape((1, -1))], {}


@graph
def updates() -> Case:
    n = pytensor.shared(np.arange(4.0), name="n")
    step = pytensor.shared(np.array(0.5), name="step")
    x = pt.vector("x")
    gradient = pt.grad(pt.sqr(n - x).sum(), n)
    return [x], [gradient.sum()], {"updates": {n: n - step * gradient, step: step * 0.9}}


@graph
def loop() -> Case:
    x, n = pt.vector("x"), pt.iscalar("n")
    states = pytensor.scan(
        lambda s, u: pt.tanh(s * 2 + u) + s.sum() * 0 + 1,
        outputs_info=[pt.zeros_like(x)],
        non_sequences=[x],
        n_steps=n,
        return_updates=False,
    )
    return [x, n], [states[-1], pt.grad(states[-1].sum(), x)], {}


@graph
def inner_graph() -> Case:
    u, v = pt.vectors("u", "v")
    op = OpFromGraph([u, v], [pt.exp(u) * v, u + v - u], inline=False)
    inlined = OpFromGraph([u, v], [pt.log1p(u) / v], inline=True)
    x, y = pt.vectors("x", "y")
    a, b = op(x, y)
    return [x, y], [a + b, inlined(a, b), *pt.grad(a.sum(), [x, y])], {}


@graph
def random_variables() -> Case:
    rng = pytensor.shared(np.random.default_rng(3), name="rng")
    mu = pt.vector("mu")
    with warnings.catch_warnings():
        # There are versions of PyTensor that know no other way.
        warnings.simplefilter("ignore", DeprecationWarning)
        next_rng, draws = pt.random.normal(mu, 2.0, rng=rng).owner.outputs
        other, more = pt.random.gamma(2.0, scale=1.0, size=(3,), rng=next_rng).owner.outputs
    return [mu], [draws * 2 + 1, more.sum()], {"updates": {rng: other}}


@graph
def sparse_matrices() -> Case:
    a = sparse.csr_matrix("a")
    x = pt.matrix("x")
    return [a, x], [sparse.structured_dot(a, x) + 1, sparse.sp_sum(a * 2.0, axis=0)], {}


@graph
def batches() -> Case:
    a = pt.tensor3("a")
    b = pt.tensor("b", shape=(None, 3))
    return [a, b], [pt.linalg.solve(a, b[:, :, None]), pt.linalg.det(a), a @ a], {}


@graph
def many_types() -> Case:
    i, j = pt.lvector("i"), pt.bvector("j")
    f, c = pt.fvector("f"), pt.zvector("c")
    row, column = pt.row("row"), pt.col("column")
    known = pt.tensor("known", shape=(3, 1), dtype="float32")
    return (
        [i, j, f, c, row, column, known],
        [
            i + j,
            i / j,
            f * i,
            f * 2 + 1.5,
            c * f,
            abs(c),
            row + column,
            known * row,
            i // 2 % 3,
            pt.switch(i > 0, f, j),
            pt.eq(i, 3) & (j > 1),
            -j,
            ~(i > 2),
            pt.clip(f, 0, 1),
        ],
        {},
    )


@graph
def conditions() -> Case:
    x, flag = pt.vector("x"), pt.scalar("flag", dtype="bool")
    checked = Assert("positive")(x, pt.all(x > 0))
    return [x, flag], [ifelse(flag, pt.log(checked), x * 2), x.prod(), x.max()], {}


@graph
def nothing_to_do() -> Case:
    x = pt.vector("x")
    return [x], [x, x + 0, pt.constant(np.ones(3))], {}


@graph
def missing_input() -> Case:
    x, y = pt.vectors("x", "y")
    return [x], [pt.exp(x) + y], {}
