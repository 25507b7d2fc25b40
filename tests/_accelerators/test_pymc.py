"""Log-densities and gradients of PyMC models, compiled step by step as without accelerators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.accelerated import assert_same_compiles

pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")

import pymc as pm

from test_pymc_models import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    def build() -> Any:
        with pm.Model() as model:
            MODELS[name](np.random.default_rng(7))
        return model.continuous_value_vars, [model.logp(), model.dlogp()], {}

    assert_same_compiles(build, True)
