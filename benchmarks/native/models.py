"""The models on which machine code is measured, and their groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensor.tensor as pt

from benchmarks.graphs.pymc_models import MODELS as PYMC_MODELS
from benchmarks.graphs.pymc_models import PyMCModel
from benchmarks.graphs.series import SERIES, Series

Model = PyMCModel | Series

MODELS: dict[str, Model] = {**SERIES, **PYMC_MODELS}

# Those that the first table of README is about, in its order.
FIVE = ("radon", "radon-student-t", "negative-binomial", "mixture", "scalars")
# Those that are mostly mathematical functions.
FUNCTIONS = ("student-t", "logistic", "negative-binomial", "weibull", "gamma", "mixture")
# Those with linear algebra, and two small ones.
MATRICES = ("gaussian-process", "ordered-logistic", "lkj", "ar", "eight-schools")
# Those whose design is a sparse matrix.
SPARSE = ("sparse-design", "sparse-intercepts")
GROUPS: dict[str, tuple[str, ...]] = {
    "matrices": MATRICES,
    "series": tuple(SERIES),
    "sparse": SPARSE,
}
# What an edit of radon makes of it.
EDITS = {"prior": "radon-prior", "likelihood": "radon-student-t"}


def chosen(only: list[str] | None, among: Sequence[str] = FIVE) -> list[Model]:
    """The models with these names, or with names that begin so; those of a group; all by default.

    Raises
    ------
    SystemExit
        If there is no such model.
    """
    if not only:
        return [MODELS[name] for name in among]
    known = [*dict.fromkeys((*FIVE, *FUNCTIONS, *MATRICES, *SERIES, *SPARSE))]
    names: list[str] = []
    for word in only:
        if word in GROUPS:
            names += GROUPS[word]
            continue
        found = [word] if word in known else [name for name in known if name.startswith(word)]
        if not found:
            raise SystemExit(f"no model is called {word!r}; there are {', '.join(known)}")
        names += found
    return [MODELS[name] for name in dict.fromkeys(names)]


def only_matrices(n: int) -> tuple[list[Any], list[Any]]:
    """``n`` factors, solutions and products of complex matrices, which are not native."""
    b = pt.zmatrix("b")
    inputs = [b]
    for i in range(n):
        a = pt.zmatrix(f"a{i}")
        inputs.append(a)
        b = pt.linalg.solve_triangular(pt.linalg.cholesky(a), b @ a, lower=True)
    return inputs, [b]
