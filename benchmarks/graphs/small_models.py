"""Small models as graphs, with gradients: where the fusion problems of the corpus come from."""

from __future__ import annotations

from collections.abc import Callable

import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph

from benchmarks.graphs.growing import deep, large
from benchmarks.graphs.log_densities import RADON, student_t_regression


def _with_gradient(cost: Variable, *parameters: Variable) -> FunctionGraph:
    return _graph([cost, *pytensor.grad(cost, list(parameters))])


def _graph(outputs: list[Variable]) -> FunctionGraph:
    return FunctionGraph(outputs=outputs, clone=True)


def likelihood(n_predictors: int) -> list[Variable]:
    """A normal likelihood with a predictor for each coefficient, and its gradient."""
    y = pt.vector("y")
    xs = [pt.vector(f"x{i}") for i in range(n_predictors)]
    coefficients = [pt.scalar(f"b{i}") for i in range(n_predictors)]
    sigma = pt.scalar("sigma")
    mu = sum((b * x for b, x in zip(coefficients, xs, strict=True)), start=pt.zeros_like(y))
    cost = (-0.5 * ((y - mu) / pt.exp(sigma)) ** 2 - sigma).sum()
    return [cost, *pytensor.grad(cost, [*coefficients, sigma])]


def logistic() -> FunctionGraph:
    """A logistic likelihood."""
    x, w = pt.matrix("x"), pt.vector("w")
    y = pt.vector("y")
    p = pt.sigmoid(x @ w)
    return _with_gradient((y * pt.log(p) + (1 - y) * pt.log1p(-p)).mean(), w)


def mixture(n_components: int) -> FunctionGraph:
    """A mixture of normal densities."""
    y, mu, sigma, weight = pt.vector("y"), *pt.vectors("mu", "sigma", "weight")
    logps = [
        -0.5 * ((y - mu[i]) / sigma[i]) ** 2 - pt.log(sigma[i]) + pt.log(weight[i])
        for i in range(n_components)
    ]
    cost = pt.logsumexp(pt.stack(logps), axis=0).sum()
    return _with_gradient(cost, mu, sigma, weight)


def gaussian_process() -> FunctionGraph:
    """The covariance of a Gaussian process, and a term of its likelihood."""
    x, y = pt.vectors("x", "y")
    scale, length, noise = pt.scalars("scale", "length", "noise")
    distance = (x[:, None] - x[None, :]) / length
    cov = scale**2 * pt.exp(-0.5 * distance**2) + noise**2 * pt.eye(x.shape[0])
    periodic = pt.exp(-2 * pt.sin(distance) ** 2) * cov
    return _with_gradient((periodic * y[:, None] * y[None, :]).sum(), scale, length, noise)


def state_space_step() -> FunctionGraph:
    """A step of a scalar filter over many series."""
    mean, variance, y = pt.vectors("mean", "variance", "y")
    a, q, r = pt.scalars("a", "q", "r")
    mean, variance = a * mean, a**2 * variance + q
    gain = variance / (variance + r)
    error = y - mean
    logp = -0.5 * (pt.log(variance + r) + error**2 / (variance + r))
    new = [mean + gain * error, (1 - gain) * variance]
    return FunctionGraph(outputs=[*new, logp.sum(), *pytensor.grad(logp.sum(), [a, q, r])])


def gru_step() -> FunctionGraph:
    """The body of a loop: a gated recurrent unit."""
    x, h = pt.matrices("x", "h")
    weights = [pt.matrix(f"w{i}") for i in range(6)]
    z = pt.sigmoid(x @ weights[0] + h @ weights[1])
    r = pt.sigmoid(x @ weights[2] + h @ weights[3])
    candidate = pt.tanh(x @ weights[4] + (r * h) @ weights[5])
    new = (1 - z) * h + z * candidate
    return FunctionGraph(outputs=[new, *pytensor.grad((new**2).sum(), weights)])


def layers(n_layers: int) -> FunctionGraph:
    """A network with normalized layers, and its gradient."""
    x = pt.matrix("x")
    weights = [pt.matrix(f"w{i}") for i in range(n_layers)]
    out = x
    for w in weights:
        hidden = out @ w
        centered = hidden - hidden.mean(axis=1, keepdims=True)
        out = pt.maximum(centered / pt.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-5), 0)
    return _with_gradient((out**2).sum(), *weights)


def updates(rule: str, n_parameters: int) -> FunctionGraph:
    """Steps of an optimizer, with the norm of all gradients clipped."""
    gradients = [pt.vector(f"g{i}") for i in range(n_parameters)]
    rate, step = pt.scalars("rate", "step")
    norm = pt.sqrt(sum((g**2).sum() for g in gradients))
    outputs = []
    for i, gradient in enumerate(gradients):
        p, m, v = pt.vector(f"p{i}"), pt.vector(f"m{i}"), pt.vector(f"v{i}")
        g = gradient / pt.maximum(norm, 1.0)
        new_m, new_v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        if rule == "momentum":
            outputs += [new_m, p - rate * new_m]
        elif rule == "rmsprop":
            outputs += [new_v, p - rate * g / pt.sqrt(new_v + 1e-8)]
        else:
            scaled = new_m / (1 - 0.9**step) / (pt.sqrt(new_v / (1 - 0.99**step)) + 1e-8)
            outputs += [new_m, new_v, p - rate * (scaled + 0.01 * p)]
    return FunctionGraph(outputs=outputs)


def softmax_attention() -> FunctionGraph:
    """Attention with a mask, and its gradient."""
    q, k, v, mask = pt.matrices("q", "k", "v", "mask")
    scores = q @ k.T / 8.0 + mask
    weights = pt.exp(scores - scores.max(axis=1, keepdims=True))
    out = (weights / weights.sum(axis=1, keepdims=True)) @ v
    return _with_gradient((out**2).sum(), q, k, v)


# Name, source, and how the graph is made.
MODELS: list[tuple[str, str, Callable[[], FunctionGraph]]] = [
    *(
        (f"regression-{n}", "linear regression with gradient", lambda n=n: _graph(likelihood(n)))
        for n in (1, 2, 4, 8)
    ),
    ("logistic", "logistic regression with gradient", logistic),
    ("radon", "hierarchical model with gradient", RADON.fgraph),
    *((f"mixture-{n}", "mixture with gradient", lambda n=n: mixture(n)) for n in (2, 3, 5)),
    ("gaussian-process", "covariance of a Gaussian process with gradient", gaussian_process),
    ("state-space", "step of a filter with gradient", state_space_step),
    ("gru", "body of a loop, a recurrent unit with gradient", gru_step),
    *((f"layers-{n}", "normalized layers with gradient", lambda n=n: layers(n)) for n in (1, 2, 4)),
    *(
        (f"{rule}-{n}", "updates of an optimizer", lambda rule=rule, n=n: updates(rule, n))
        for rule in ("momentum", "rmsprop", "adam")
        for n in (1, 3, 6)
    ),
    ("attention", "attention with gradient", softmax_attention),
    *(
        (f"student-t-{n}", "robust regression", lambda n=n: _graph(student_t_regression(n)[1]))
        for n in (2, 4)
    ),
    *((f"deep-{n}", "reference graph of the benchmarks", deep(n).fgraph) for n in (2, 8, 20)),
    *((f"large-{n}", "reference graph of the benchmarks", large(n).fgraph) for n in (1, 2, 3, 5)),
]
