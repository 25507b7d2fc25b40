"""Which ops an audit knows that work on matrices, and what it says of others."""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import walk_packages

import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import wrap_py
from pytensor.graph.basic import Apply
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.decomposition.lu import LUFactor

from pytensor_fuse._audit.sections.matrices import kinds
from support.linalg.audits import T3, A, found


class Strange(Op):
    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0]


class StrangeCholesky(Cholesky):
    pass


@pytest.mark.parametrize(
    ("op", "why"),
    [
        (lambda: Strange()(A), f"Strange of {__name__} is not known"),
        (lambda: StrangeCholesky()(A), "StrangeCholesky is a kind of Cholesky"),
        (lambda: Blockwise(StrangeCholesky())(T3), "StrangeCholesky is a kind of Cholesky"),
        (lambda: wrap_py([pt.dmatrix], [pt.dmatrix])(lambda x: x)(A), "a Python function"),
        (lambda: OpFromGraph([A], [Strange()(A)])(A), f"Strange of {__name__}"),
    ],
)
def test_unknown_ops(op, why):
    for outputs in ([op()], [op(), pt.linalg.det(A)]):
        section = found(*outputs)
        [unknown] = section.unknown
        assert why in unknown.why
        assert "may be work on matrices or not:" in section.lines()
        assert any(str(unknown) in line for line in section.lines())


class Checked(CheckAndRaise):
    """As PyMC has one."""


class Replaced(CheckAndRaise):
    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0].T


def test_a_kind_of_check_passes_its_value_unless_it_does_something_else():
    for kind, passes in ((Checked, True), (Replaced, False)):
        checked = kind(ValueError, "")(A, pt.gt(A[0, 0], 0))
        section = found(pt.linalg.det(A), pt.linalg.inv(checked))
        assert bool(section.matrices) == passes
        assert bool(section.unknown) != passes


def test_each_op_of_linear_algebra_is_known():
    ops = set()
    for prefix in kinds._LINEAR_ALGEBRA:
        module = import_module(prefix)
        modules = [module]
        modules += [
            import_module(info.name)
            for info in walk_packages(getattr(module, "__path__", []), f"{prefix}.")
        ]
        for part in modules:
            ops |= {
                kind
                for _, kind in inspect.getmembers(part, inspect.isclass)
                if issubclass(kind, Op) and kind.__module__.startswith(prefix)
            }
    abstract = {"BaseBLAS", "BaseBlockDiagonal", "GemmRelated", "SolveBase"}
    assert Cholesky in ops
    assert LUFactor in ops
    missing = {
        kind.__name__
        for kind in ops
        if kind not in kinds._KINDS
        and kind.__name__ not in kinds._CHEAP | abstract
        and not issubclass(kind, HasInnerGraph)
    }
    assert not missing
    # Nothing is on both lists.
    assert not {kind.__name__ for kind in kinds._KINDS} & kinds._CHEAP
