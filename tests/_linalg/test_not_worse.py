"""What PyTensor's own rules of linear algebra make cheaper is no dearer with ours."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import numpy as np
import pytensor.tensor.rewriting.linalg
import pytest
from hypothesis import Phase, assume, example, given, settings
from hypothesis import strategies as st
from pytensor.compile.mode import AddFeatureOptimizer
from pytensor.graph.features import Feature
from pytensor.graph.rewriting.basic import Rewriter

from support.effort import IS_DEEP
from support.linalg.costs import FUSED, work_of
from support.linalg.nests import graph_of, nests
from support.linalg.rules import compile_ours, compile_stock
from support.linalg.stock import PATTERNS, values
from support.linalg.stock import given as inputs_of

VALUES = list(values())
RELEASE = tuple(int(part) for part in pytensor.__version__.split(".")[:2])
NEWEST = pytest.mark.skipif(RELEASE < (3, 3), reason="an older release has other rules")


class Reasons(Feature):
    """The names of the rewriters that have changed a graph."""

    def __init__(self):
        self.names = set()

    def on_change_input(self, fgraph, node, i, old, new, reason=None):
        self.names.add(str(reason))


def assert_not_worse(inputs, outputs, mode=FUSED):
    """Compare values and work with stock's, which is compiled in a mode."""
    ours, stock = compile_ours(inputs, outputs, FUSED), compile_stock(inputs, outputs, mode)
    mine, theirs = ours(*VALUES), stock(*VALUES)
    for one, other in zip(mine, theirs, strict=True):
        # In Python, the reciprocals of kernels are of single precision.
        atol = 1e-6 * (1 + np.abs(other).max(initial=0))
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=atol)
    work, before = work_of(ours, VALUES, mine), work_of(stock, VALUES, theirs)
    # Thin products may stand for an array that is not made.
    assert work.of_matrices <= before.of_matrices * 1.05, (work, before)
    # Nobody notices a few more numbers.
    assert work.time <= before.time * 1.01 + 300, (work, before)


def stock_rules():
    """Return the names of PyTensor's rules, but for those that JAX alone has."""
    package = pytensor.tensor.rewriting.linalg
    names = set()
    for found in pkgutil.iter_modules(package.__path__):
        module = import_module(f"{package.__name__}.{found.name}")
        for name, one in vars(module).items():
            made_by = getattr(one, "fn", type(one))
            if isinstance(one, Rewriter) and made_by.__module__ == module.__name__:
                names.add(name)
    return {name for name in names if "jax" not in name}


@NEWEST
def test_each_rule_of_stock_has_an_example():
    assert stock_rules() <= PATTERNS.keys()


# What is said of sizes matters to few; pairs have both.
@pytest.mark.parametrize("known", [True, False] if IS_DEEP else [True])
@pytest.mark.parametrize("rule", PATTERNS)
def test_examples(rule, known):
    inputs = inputs_of(known=known)
    reasons = Reasons()
    for one in PATTERNS[rule](inputs):
        outputs = list(one) if isinstance(one, list | tuple) else [one]
        assert_not_worse(inputs, outputs, FUSED.register((AddFeatureOptimizer(reasons), 0)))
    if known and RELEASE >= (3, 3):
        assert reasons.names & {rule, rule.removesuffix("_chain")}


# Shrinking compiles hundreds of graphs.
@settings(max_examples=settings().max_examples // 2, phases=[Phase.explicit, Phase.generate])
@example(("quadratic form", "twice", "identity", "around", "", "blocks"), True)
@example(
    (
        "gradient of the quadratic form",
        "",
        "definite blocks",
        "times inverse of",
        "transpose of",
        "symmetric",
    ),
    True,
)
@given(nests(), st.booleans())
def test_two_of_them(nest, known):
    inputs, outputs = graph_of(nest, known=known)
    assume(outputs)
    assert_not_worse(inputs, outputs)
