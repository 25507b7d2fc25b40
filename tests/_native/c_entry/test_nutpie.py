"""nutpie's sampler calls machine code; Numba's code for the same functions is the oracle.

The machine code of PyTensor's functions is the same on both sides, so all bits agree.
"""

import ctypes
import gc
import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pytensor_fuse
from pytensor_fuse._native.c_entry.nutpie import NutpieCallback
from pytensor_fuse._native.linking.thunks import NativeThunk
from support.effort import examples
from support.numba_only import numba_mirrored
from support.switching import switched

pm = pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")
nutpie = pytest.importorskip("nutpie", reason="not installed")

mcmc = pytest.importorskip("pymc.sampling.mcmc")

N_DIM, N_EXPANDED = 4, 17


def build():
    """Return a model with several kinds of shared variables, and with points without a value."""
    with pm.Model() as model:
        data = pm.Data("data", np.array([0.5, 1.0, -0.25, 2.0]))
        group = pm.Data("group", np.array([0, 1, 1, 0]))
        scale = pytensor.shared(2.0, name="scale")
        offsets = pytensor.shared(np.array([0.5, -0.5]), shape=(2,), name="offsets")
        table = pytensor.shared(np.arange(6.0).reshape(2, 3), name="table")
        effects = pm.Normal("effects", shape=2)
        sigma = pm.HalfNormal("sigma")
        weight = pm.Beta("weight", 2, 2)
        pm.Deterministic("scaled", effects * scale + offsets)
        pm.Deterministic("rows", table * weight)
        pm.Deterministic("fit", effects[group].sum())
        pm.Deterministic("few", data[:2])
        # A gradient that is NaN where the value is not, and a value that alone is infinite.
        pm.Potential("kink", pt.sqrt(pt.abs(effects[0] - 7.0)))
        pm.Potential("wall", pt.switch(effects[1] > 50.0, np.inf, 0.0))
        pm.Normal("y", effects[group], sigma, observed=data)
    return model


@pytest.fixture(scope="module")
def model():
    return build()


@pytest.fixture(scope="module")
def ours(model):
    made = nutpie.compile_pymc_model(model)
    assert type(made.compiled_logp_func) is NutpieCallback
    assert type(made.compiled_expand_func) is NutpieCallback
    return made


@pytest.fixture(scope="module")
def theirs(model):
    with switched(False, **without("nutpie")):
        made = nutpie.compile_pymc_model(model)
    assert isinstance(made.logp_func.vm, NativeThunk)
    assert type(made.compiled_logp_func) is not NutpieCallback
    return made


def without(name):
    """Return the argument of `enabled` that switches off one feature alone."""
    return {other: other == name for other in pytensor_fuse.status()}


def pointer(array):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def called_logp(compiled, point, n_dim=N_DIM):
    """Return the code, and the value and the gradient as bytes if there are any."""
    point, gradient, value = np.array(point, float), np.zeros(N_DIM), np.zeros(())
    call = compiled.compiled_logp_func.ctypes
    record = compiled.user_data.ctypes.data
    code = call(n_dim, pointer(point), pointer(gradient), pointer(value), record)
    # After an error, nothing reads the results.
    return code, (value.tobytes(), gradient.tobytes()) if code in (0, 3, 4) else None


def called_expand(compiled, point, n_dim=N_DIM, n_expanded=N_EXPANDED):
    point, values = np.array(point, float), np.zeros(N_EXPANDED)
    call = compiled.compiled_expand_func.ctypes
    record = compiled.user_data.ctypes.data
    code = call(n_dim, n_expanded, pointer(point), pointer(values), record)
    return code, values.tobytes() if code == 0 else None


POINT = [0.25, -0.5, 0.125, 0.75]


def test_dimensions(ours, theirs):
    assert (ours.n_dim, ours.n_expanded) == (theirs.n_dim, theirs.n_expanded)
    assert (ours.n_dim, ours.n_expanded) == (N_DIM, N_EXPANDED)
    assert ours.shapes == theirs.shapes
    assert ours.dims == theirs.dims
    assert ours.reparameterized_names == theirs.reparameterized_names
    assert {k: list(v) for k, v in ours.coords.items()} == {
        k: list(v) for k, v in theirs.coords.items()
    }


def test_the_values_are_those_of_the_functions(ours):
    code, (value, gradient) = called_logp(ours, POINT)
    expected = ours.logp_func(np.array(POINT))
    assert (code, value, gradient) == (0, *[np.asarray(one).tobytes() for one in expected])
    code, values = called_expand(ours, POINT)
    assert (code, values) == (0, ours.expand_func(np.array(POINT))[0].tobytes())


@pytest.mark.parametrize(
    ("point", "code"),
    [
        (POINT, 0),
        ([7.0, 0.0, 0.0, 0.0], 3),
        ([0.0, 51.0, 0.0, 0.0], 4),
        ([7.0, 51.0, 0.0, 0.0], 3),
        ([np.nan, 0.0, 0.0, 0.0], 3),
        ([0.0, np.inf, 0.0, 0.0], 3),
    ],
)
def test_codes_of_what_is_not_finite(ours, theirs, point, code):
    assert called_logp(ours, point)[0] == code
    assert called_logp(ours, point) == called_logp(theirs, point)
    assert called_expand(ours, point) == called_expand(theirs, point)


@given(st.lists(st.floats(width=64), min_size=N_DIM, max_size=N_DIM))
@examples(2)
def test_any_point(ours, theirs, point):
    assert called_logp(ours, point) == called_logp(theirs, point)
    assert called_expand(ours, point) == called_expand(theirs, point)


@pytest.mark.parametrize("n_dim", [0, 3, 5, 2**63])
def test_a_point_of_another_size(ours, theirs, n_dim):
    assert called_logp(ours, POINT, n_dim) == called_logp(theirs, POINT, n_dim) == (-1, None)
    found = called_expand(ours, POINT, n_dim), called_expand(theirs, POINT, n_dim)
    assert found == ((-1, None),) * 2
    for compiled in (ours, theirs):
        assert called_expand(compiled, POINT, n_expanded=N_EXPANDED + 1) == (-1, None)


@pytest.mark.parametrize(
    ("updates", "codes"),
    [
        ({"scale": 3.0}, (0, 0)),
        ({"data": [1.0, 2.0, 3.0, 4.0], "table": -np.ones((2, 3))}, (0, 0)),
        # More rows, which some shapes do not fit.
        ({"data": np.ones(6), "group": [0, 1, 0, 1, 0, 1]}, (0, 0)),
        ({"data": np.ones(6)}, (1, 0)),
        ({"data": np.ones(1), "group": [1]}, (0, -2)),
        ({"data": np.ones(0), "group": np.ones(0)}, (0, -2)),
        ({"table": np.ones((3, 3))}, (0, -2)),
        ({"table": np.ones((3, 2))}, (0, 0)),
        # An index out of bounds, and a length that contradicts the graph.
        ({"group": [0, 1, 2, 0]}, (1, -2)),
        ({"offsets": np.ones(3)}, (0, -2)),
        ({"data": [1.0, np.nan, 3.0, 4.0]}, (3, 0)),
    ],
    ids=str,
)
def test_other_data(ours, theirs, updates, codes):
    before = called_logp(ours, POINT), called_expand(ours, POINT)
    mine, other = ours.with_data(**updates), theirs.with_data(**updates)
    assert (called_logp(mine, POINT)[0], called_expand(mine, POINT)[0]) == codes
    assert called_logp(mine, POINT) == called_logp(other, POINT)
    assert called_expand(mine, POINT) == called_expand(other, POINT)
    # The first model still has its own data.
    assert (called_logp(ours, POINT), called_expand(ours, POINT)) == before


def test_data_are_those_of_the_model_when_it_was_compiled(ours, model):
    before = called_logp(ours, POINT)
    data = model["data"].get_value()
    with model:
        pm.set_data({"data": data + 1.0})
    try:
        assert called_logp(ours, POINT) == before
        assert called_logp(ours.with_data(data=data + 1.0), POINT) != before
    finally:
        with model:
            pm.set_data({"data": data})


def drawn(compiled, **options):
    return nutpie.sample(compiled, draws=15, tune=25, seed=1, progress_bar=False, **options)


@pytest.mark.parametrize("chains", [1, 3])
def test_the_same_draws(ours, theirs, chains):
    mine, other = (drawn(one, chains=chains, cores=2) for one in (ours, theirs))
    assert set(mine.children) == set(other.children) >= {"posterior", "sample_stats"}
    for group in mine.children:
        assert set(mine[group].data_vars) == set(other[group].data_vars)
        for name in mine[group].data_vars:
            values, expected = (
                # Messages are objects, with NaN for none.
                found.astype(str) if found.dtype == object else found
                for found in (mine[group][name].values, other[group][name].values)
            )
            np.testing.assert_array_equal(values, expected, err_msg=f"{group}, {name}")


def test_the_same_error_where_there_is_no_start(ours, theirs):
    """The density is not finite at any point."""
    nowhere = {"data": [np.inf, 0.0, 0.0, 0.0]}
    said = []
    for compiled in (ours, theirs):
        with pytest.raises(RuntimeError) as raised:
            drawn(compiled.with_data(**nowhere), chains=1)
        said.append(str(raised.value))
    assert said[0] == said[1]


def test_a_callback_keeps_its_code():
    with pm.Model() as model:
        pm.Normal("x", shape=3)
    compiled = nutpie.compile_pymc_model(model)
    call, record = compiled.compiled_logp_func.ctypes, compiled.user_data
    del compiled, model
    pytensor_fuse.cache.clear()
    gc.collect()
    point, gradient, value = np.array([1.0, 2.0, -3.0]), np.zeros(3), np.zeros(())
    assert call(3, pointer(point), pointer(gradient), pointer(value), record.ctypes.data) == 0
    np.testing.assert_allclose(gradient, -point)
    np.testing.assert_allclose(value, -7.0 - 1.5 * np.log(2 * np.pi))


def test_what_a_callback_says(ours):
    callback = ours.compiled_logp_func
    assert repr(callback) == "<C callback 'logp' of machine code>"
    assert callback.native_name == "logp"
    assert "define i64 @logp(i64 %n_dim" in callback.inspect_llvm()
    with pytest.raises(TypeError, match="a C callback cannot be pickled"):
        pickle.dumps(callback)


class _Numba:
    """Stands in for Numba's compiled function, which takes seconds to compile."""

    def __init__(self, monkeypatch):
        self.asked = []
        monkeypatch.setattr("numba.cfunc", self._cfunc)

    def _cfunc(self, signature, **options):
        def compiled(function):
            self.asked.append((function.__name__, options))
            return function

        return compiled


@pytest.mark.parametrize("part", ["logp", "expand"])
def test_what_is_not_native_is_for_numba(part, monkeypatch):
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        total = numba_mirrored(pt.tanh(x))[-1]
        (pm.Potential if part == "logp" else pm.Deterministic)("total", total)
    numba = _Numba(monkeypatch)
    compiled = nutpie.compile_pymc_model(model)
    assert numba.asked == [(f"{part}_numba", {})]
    kinds = type(compiled.compiled_logp_func), type(compiled.compiled_expand_func)
    assert [kind is NutpieCallback for kind in kinds] == [part == "expand", part == "logp"]


def test_a_fault_leaves_a_callback_to_numba(monkeypatch):
    def fail(*args):
        raise LookupError("a fault of a test")

    numba = _Numba(monkeypatch)
    monkeypatch.setattr("pytensor_fuse._native.c_entry.nutpie.logp_text", fail)
    with pm.Model() as model:
        pm.Normal("x")
    with pytest.warns(RuntimeWarning, match="callback of nutpie's .* LookupError: a fault of a"):
        nutpie.compile_pymc_model(model)
    assert numba.asked == [("logp_numba", {})]


def test_code_that_cannot_be_made_leaves_callbacks_to_numba(monkeypatch):
    def fail(*args):
        raise RuntimeError("LLVM says no")

    numba = _Numba(monkeypatch)
    monkeypatch.setattr("pytensor_fuse._native.c_entry.nutpie.CCode", fail)
    with pm.Model() as model:
        pm.Normal("x")
    with pytest.warns(RuntimeWarning, match="RuntimeError: LLVM says no") as said:
        nutpie.compile_pymc_model(model)
    assert len(said) == 1
    assert numba.asked == [("logp_numba", {}), ("expand_numba", {})]


def test_options_are_for_numba():
    with pm.Model() as model:
        pm.Normal("x", 1.0)
    compiled = nutpie.compile_pymc_model(model, fastmath=True)
    for callback in (compiled.compiled_logp_func, compiled.compiled_expand_func):
        assert callback.__class__.__module__ == "numba.core.ccallback"
    ours = nutpie.compile_pymc_model(model)
    mine, other = (drawn(one, chains=1).posterior["x"] for one in (ours, compiled))
    np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("feature", ["native", "nutpie"])
def test_numba_has_all_where_a_feature_is_off(feature, monkeypatch):
    numba = _Numba(monkeypatch)
    with pm.Model() as model:
        pm.Normal("x")
    with switched(False, **without(feature)):
        nutpie.compile_pymc_model(model)
    assert [name for name, _ in numba.asked] == ["logp_numba", "expand_numba"]


def test_variables_and_initial_points_are_nutpies_to_choose(model):
    compiled = nutpie.compile_pymc_model(
        model, var_names=["fit"], initial_points={"sigma": 3.0, "weight": 0.3}, jitter_rvs=set()
    )
    assert compiled.n_expanded == N_DIM + 1
    assert list(compiled.shapes) == ["effects", "sigma_log__", "weight_logodds__", "fit"]
    np.testing.assert_allclose(compiled.initial_point_func(1)[2], np.log(3.0))
    trace = drawn(compiled, chains=1)
    assert set(trace.posterior.data_vars) == {"effects", "fit"}


def test_a_frozen_model(model):
    compiled = nutpie.compile_pymc_model(model, freeze_model=True)
    assert type(compiled.compiled_logp_func) is NutpieCallback
    with pytest.raises(KeyError, match="Unknown shared variable: data"):
        compiled.with_data(data=np.ones(4))
    assert called_logp(compiled, POINT)[0] == 0


def test_pm_sample_takes_it(model):
    if not mcmc._nutpie_meets_min_version():
        pytest.skip(f"PyMC does not take nutpie {nutpie.__version__}")
    with model:
        trace = pm.sample(
            10,
            tune=10,
            chains=1,
            nuts_sampler="nutpie",
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    assert trace.posterior["scaled"].shape == (1, 10, 2)
