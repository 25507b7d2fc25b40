"""Functions that are known to run once: Python code replaces Numba's."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.raise_op import Assert
from pytensor.tensor.random import basic

import pytensor_fuse
from pytensor_fuse import explain
from pytensor_fuse._native.linking import python_runs
from pytensor_fuse._native.linking.python_costs import COMPILE, run_cost, why_not_python
from pytensor_fuse._native.linking.python_runs import PythonRun
from pytensor_fuse._native.linking.thunks import NativeThunk
from pytensor_fuse._pytensor.linking.known_runs import evaluated_by, known_runs, runs_known
from pytensor_fuse.reports import NativeState
from support.native.functions import stock_function
from support.programs.processes import run_python
from support.switching import switched

PYTHON = Mode("py", "fast_compile")


def in_python(inputs, outputs, n_runs=1, **kwargs):
    """Return a function that runs nodes without machine code in Python."""
    with runs_known(n_runs):
        function = pytensor.function(inputs, outputs, mode="NUMBA", **kwargs)
    assert isinstance(function.vm, PythonRun), function.vm
    return function


class NoRule(Op):
    """An op that returns its input, in Python only."""

    __props__ = ()

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0].copy()


class Compiles(NoRule):
    """An op that compiles a function while it runs."""

    known = "nobody asked"

    def perform(self, node, inputs, outputs):
        type(self).known = known_runs()
        super().perform(node, inputs, outputs)


class Overwrites(NoRule):
    """An op that works in place."""

    destroy_map: ClassVar = {0: [0]}

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0]
        outputs[0][0] += 1


def mixed(x):
    """Return a graph of regions, nodes without rules, and nodes that only make views."""
    before = pt.exp(x * 0.1) + 1
    middle = NoRule()(before)
    after = (pt.tanh(middle) * x).sum(axis=0)
    return [after, middle.T, before, pt.as_tensor(np.arange(3.0)), x, after.shape[0]]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_are_those_of_python(dtype):
    x = pt.matrix("x", dtype=dtype)
    ours, theirs = in_python([x], mixed(x)), pytensor.function([x], mixed(x), mode=PYTHON)
    assert len(ours.vm.parts.regions) == 2

    @given(
        hnp.arrays(
            dtype,
            hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=4),
            elements=st.floats(-3, 3, width=32),
        ),
        st.booleans(),
    )
    def check(value, is_strided):
        value = np.repeat(value, 2, axis=1)[:, ::2] if is_strided else value
        for mine, yours in zip(ours(value), theirs(value), strict=True):
            assert type(mine) is type(yours)
            assert mine.dtype == yours.dtype
            assert mine.shape == yours.shape
            np.testing.assert_allclose(mine, yours, rtol=1e-12 if dtype == "float64" else 1e-5)

    check()
    assert ours.vm.compiled is None


def test_what_was_returned_stays_as_it_is():
    x = pt.vector("x")
    function = in_python([x], [pt.exp(NoRule()(x)), NoRule()(x)])
    first = function(np.zeros(3))
    second = function(np.ones(3))
    np.testing.assert_array_equal(first[0], np.ones(3))
    np.testing.assert_array_equal(first[1], np.zeros(3))
    np.testing.assert_array_equal(second[1], np.ones(3))


def test_what_is_overwritten_and_updated():
    state = pytensor.shared(np.zeros(3), name="state")
    x = pt.vector("x")
    grown = Overwrites()(pt.exp(x) + state)
    function = in_python(
        [x], [grown * 2], updates={state: Overwrites()(state)}, accept_inplace=True
    )
    value = np.zeros(3)
    np.testing.assert_array_equal(function(value), [np.full(3, 4.0)])
    np.testing.assert_array_equal(function(value), [np.full(3, 6.0)])
    np.testing.assert_array_equal(state.get_value(), np.full(3, 2.0))
    np.testing.assert_array_equal(value, np.zeros(3))


def test_evaluation_runs_in_python_until_it_has_cost_as_much_as_compiling(monkeypatch):
    monkeypatch.setattr(python_runs, "COMPILE", 200)
    x = pt.zvector("x")
    y = x + 1
    for _ in range(2):
        np.testing.assert_array_equal(y.eval({x: [1j]}), [1 + 1j])
    run = evaluated_by(y).vm
    assert (run.n_runs, run.most_runs, run.compiled) == (2, 2, None)
    np.testing.assert_array_equal(y.eval({x: [2j]}), [1 + 2j])
    assert run.n_runs == 2
    assert run.compiled is not None
    assert explain(y, "native").state is NativeState.NO_RULE
    np.testing.assert_array_equal(y.eval({x: [3j]}), [1 + 3j])


def test_the_function_for_numba_is_compiled_when_somebody_asks_for_it():
    x = pt.zvector("x")
    function = in_python([x], x + 2)
    [result] = function.vm.jit_fn(np.array([1j]))
    np.testing.assert_array_equal(result, [2 + 1j])
    assert function.vm.compiled is not None
    np.testing.assert_array_equal(function([2j]), [2 + 2j])


def test_numba_is_not_imported():
    run_python(
        "import sys, numpy as np, pytensor_fuse, pytensor, pytensor.tensor as pt",
        "x = pt.matrix('x')",
        "found = pt.linalg.eig(pt.exp(x))[0].eval({x: np.eye(3)})",
        "assert abs(found.sum() - 3 * np.e) < 1e-9, found",
        "assert 'numba' not in sys.modules",
    )


def test_what_is_compiled_otherwise_is_compiled():
    x = pt.zvector("x")
    y = x + 3
    y.eval({x: [1j]})
    assert isinstance(evaluated_by(y).vm, PythonRun)
    assert known_runs() is None
    copied = evaluated_by(y).copy()
    assert not isinstance(copied.vm, PythonRun)
    np.testing.assert_array_equal(copied([1j]), [3 + 1j])
    # Equal graphs that run once reuse Numba's code.
    assert not isinstance(pytensor.function([x], x + 3, mode="NUMBA").vm, PythonRun)


def test_what_runs_meanwhile_is_not_known_to_run_once():
    Compiles()(pt.as_tensor([1.0, 2.0]) * pytensor.shared(1.0)).eval()
    assert Compiles.known is None


def test_machine_code_as_a_whole_and_other_linkers_stay_as_they_are():
    x = pt.vector("x")
    y = pt.exp(x)
    y.eval({x: [1.0]})
    assert isinstance(evaluated_by(y).vm, NativeThunk)
    y.eval({x: [1.0]}, mode="FAST_COMPILE")
    assert explain(y, "native").state is NativeState.OTHER


def test_the_switch_and_its_undoing():
    ours = Variable.eval
    x = pt.zvector("x")
    with switched(single_runs=False):
        stock = Variable.eval
        assert stock is not ours
        assert (x + 4).eval.__doc__ == ours.__doc__
        assert not pytensor_fuse.status()["single_runs"].is_on
        y = NoRule()(x)
        with pytest.warns(UserWarning, match="object mode"):
            y.eval({x: [1j]})
        assert not isinstance(evaluated_by(y).vm, PythonRun)
    assert Variable.eval is ours
    with switched(native=False):
        z = x + 5
        z.eval({x: [1j]})
        assert not isinstance(evaluated_by(z).vm, PythonRun)


def test_exceptions_are_those_of_machine_code():
    x, index = pt.vector("x"), pt.lscalar("index")
    function = in_python([x, index], pt.exp(NoRule()(x))[index])
    with pytest.raises(IndexError, match="out of bounds"):
        function(np.zeros(2), 5)
    checked = Assert("not positive")(pt.exp(x), pt.all(x > 0))
    with pytest.raises(AssertionError, match="not positive"):
        NoRule()(checked).eval({x: [-1.0]})
    assert function(np.zeros(2), 1) == 1


def test_nothing_is_said_of_numbers_that_overflow():
    z = pt.zvector("z")
    assert np.isnan((1 / z).eval({z: [0j]}).real).all()


@pytest.mark.parametrize("name", ["normal", "gamma", "binomial", "student"])
def test_draws_are_numbas(name):
    def drawn(make):
        rng = pytensor.shared(np.random.default_rng(3), name="rng")
        scale = pt.vector("scale")
        op, *parameters = {
            "normal": (basic.normal, 1.0, scale),
            "gamma": (basic.GammaRV(), scale, 2.0),
            "binomial": (basic.binomial, 30, scale / 10),
            "student": (basic.t, 3.0, 1.0, scale),
        }[name]
        after, draws = op.make_node(rng, (40, 2), *parameters).outputs
        outputs = [NoRule()(draws) if make is in_python else draws]
        function = make([scale], outputs, updates={rng: after})
        found = [function([0.5, 3.0])[0] for _ in range(2)]
        return found, rng.get_value().bit_generator.state

    (ours, state), (theirs, their_state) = drawn(in_python), drawn(stock_function)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert state == their_state


def test_a_generator_that_is_not_updated_stays_as_it_was():
    rng = pytensor.shared(np.random.default_rng(3), name="rng")
    draws = NoRule()(basic.normal.make_node(rng, (4,), 0.0, 1.0).outputs[1])
    np.testing.assert_array_equal(draws.eval(), draws.eval())
    assert rng.get_value().bit_generator.state == np.random.default_rng(3).bit_generator.state


def refused(*outputs):
    inputs = [
        one
        for one in pytensor.graph.traversal.graph_inputs(outputs)
        if not isinstance(one, pytensor.graph.basic.Constant)
    ]
    return why_not_python(pytensor.graph.fg.FunctionGraph(inputs, list(outputs)).toposort())


def test_what_stays_with_numba():
    x, z = pt.vector("x"), pt.ztensor3("z")
    half = pt.vector("half", dtype="float16")
    assert "Numba draws other" in refused(
        basic.bernoulli.make_node(pytensor.shared(np.random.default_rng(1)), None, 0.5).out
    )
    assert "Numba draws other" in refused(
        # PyTensor represents 0.5 in single precision.
        basic.poisson.make_node(pytensor.shared(np.random.default_rng(1)), None, 0.5).out
    )
    assert "float16" in refused(half + 1)
    assert "a function of its own" in refused(
        pytensor.scan(lambda a: a * 2, sequences=x, return_updates=False)
    )
    assert "length is not known" in refused(pt.linalg.inv(z))
    assert "over elements" in refused(pt.softplus(x))
    assert refused(pt.exp(x), pt.linalg.inv(pt.specify_shape(z, (3, None, None)))) is None


def test_loops_and_many_runs_cost():
    z = pt.specify_shape(pt.ztensor3("z"), (3000, None, None))
    nodes = [pt.linalg.inv(z).owner]
    assert run_cost(nodes, 0) > run_cost([pt.exp(pt.vector()).owner], 2)
    x = pt.zvector("x")
    with runs_known(COMPILE):
        function = pytensor.function([x], x + 6, mode="NUMBA")
    assert not isinstance(function.vm, PythonRun)


def test_the_report_says_why():
    x = pt.vector("x", shape=(50,))
    y = NoRule()(pt.exp(x).sum())
    y.eval({x: np.zeros(50)})
    found = explain(y, "native")
    assert found.state is NativeState.PYTHON
    assert not found.is_native
    assert found.python_runs.n_runs == 1
    assert len(found.regions) == 1
    assert "1 of 6,666 runs in Python" in str(found)
    assert found.to_dict()["python_runs"]["most_runs"] == found.python_runs.most_runs
    assert "runs in Python" in found.to_html()
    with pytest.raises(TypeError, match="explain takes"):
        explain(x, "native")
