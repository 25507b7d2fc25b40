"""Models whose design is a sparse matrix, a constant as PyMC has data.

    python -m benchmarks.native.calls --only sparse --sides stock,ours
    python -m benchmarks.native.cold --only sparse --steps first --sides stock,ours

JAX mode has no products of sparse matrices and dense vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

N_COLUMNS = 500
DENSITY = 0.01


def logistic_regression(design: Any) -> None:
    """Add a logistic regression on a sparse design to the PyMC model whose context is open."""
    import pymc as pm
    from pytensor import sparse

    rng = np.random.default_rng(31)
    effects = rng.normal(size=design.shape[1])
    y = rng.random(design.shape[0]) < 1 / (1 + np.exp(-design @ effects))
    sigma = pm.HalfNormal("sigma", 2)
    beta = pm.Normal("beta", 0, 1, shape=design.shape[1])
    eta = sparse.structured_dot(sparse.as_sparse_variable(design), (sigma * beta)[:, None])[:, 0]
    pm.Bernoulli("y", logit_p=eta, observed=y.astype("int64"))


def sparse_design(rows: int) -> None:
    """A logistic regression with 500 predictors that are seldom there."""
    import scipy.sparse

    rng = np.random.default_rng(30)
    design = scipy.sparse.random(rows, N_COLUMNS, DENSITY, "csr", random_state=rng)
    logistic_regression(design)


def sparse_intercepts(rows: int) -> None:
    """A logistic regression with an intercept for each of 500 groups: an indicator matrix."""
    import scipy.sparse

    groups = np.random.default_rng(30).integers(0, N_COLUMNS, rows)
    parts = np.ones(rows), groups, np.arange(rows + 1)
    logistic_regression(scipy.sparse.csr_matrix(parts, shape=(rows, N_COLUMNS)))
