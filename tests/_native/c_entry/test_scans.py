"""Functions with a Scan, called from C and by nutpie."""

from __future__ import annotations

import ctypes
import shutil
import sys

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.scan import until

from pytensor_fuse._native.c_entry.nutpie import NutpieCallback
from pytensor_fuse.native import compile_c, export_c
from support.native.functions import native_function

X = np.linspace(-1.0, 2.0, 9)


def scan(fn, **kwargs):
    return pytensor.scan(fn, return_updates=False, **kwargs)


def doubling():
    """Return a function whose steps determine the length of the result."""
    x, most = pt.dvector("x"), pt.dscalar("most")
    trace = scan(
        lambda now, before: ([before + now], until(before > most)),
        sequences=[x],
        outputs_info=[pt.constant(np.float64(1.0))],
    )
    return native_function([x, most], [trace, trace[-1]])


@pytest.mark.parametrize("most", [0.0, 3.5, 100.0])
def test_functions_of_c(most):
    function = doubling()
    ones, most = np.ones(6), np.float64(most)
    for found, expected in zip(compile_c(function)(ones, most), function(ones, most), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("cc") is None, reason="there is no C compiler"
)
def test_libraries(tmp_path):
    files = export_c(doubling(), tmp_path)
    call = ctypes.CDLL(str(files.library)).model
    call.restype = ctypes.c_int64
    x, most = np.ones(6), np.array(3.5)
    outs = np.full(6, -1.0), np.full(1, -1.0)
    lengths = (ctypes.c_int64 * 1)()
    code = call(
        (ctypes.c_void_p * 2)(x.ctypes.data, most.ctypes.data),
        (ctypes.c_int64 * 1)(6),
        (ctypes.c_void_p * 2)(*[one.ctypes.data for one in outs]),
        (ctypes.c_int64 * 2)(6, 1),
        lengths,
        (ctypes.c_int64 * 8)(),
    )
    assert (code, lengths[0]) == (0, 4)
    np.testing.assert_array_equal(outs[0], [2.0, 3.0, 4.0, 5.0, -1.0, -1.0])
    assert outs[1] == 5.0


def logp_by_hand(rho, log_sigma):
    """Return the log density of the model, and its gradient by differences."""

    def value(rho, log_sigma):
        sigma, state, total = np.exp(log_sigma), 0.0, -0.5 * (rho**2 + log_sigma**2)
        for now in X:
            total -= 0.5 * ((now - rho * state) / sigma) ** 2 + log_sigma
            state = now
        return total - np.log(2 * np.pi)

    step = 1e-6
    slopes = [
        (value(rho + step, log_sigma) - value(rho - step, log_sigma)) / (2 * step),
        (value(rho, log_sigma + step) - value(rho, log_sigma - step)) / (2 * step),
    ]
    return value(rho, log_sigma), slopes


def test_nutpie_calls_a_scan():
    pm = pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")
    nutpie = pytest.importorskip("nutpie", reason="not installed")
    with pm.Model() as model:
        rho, log_sigma = pm.Normal("rho"), pm.Normal("log_sigma")
        terms = scan(
            lambda now, state, rho, log_sigma: [
                now,
                -0.5 * ((now - rho * state) / pt.exp(log_sigma)) ** 2 - log_sigma,
            ],
            sequences=[pt.constant(X)],
            outputs_info=[pt.constant(np.float64(0.0)), None],
            non_sequences=[rho, log_sigma],
        )[1]
        pm.Potential("terms", terms.sum())
    compiled = nutpie.compile_pymc_model(model)
    assert type(compiled.compiled_logp_func) is NutpieCallback
    assert type(compiled.compiled_expand_func) is NutpieCallback
    point, gradient, value = np.array([0.3, -0.2]), np.zeros(2), np.zeros(())
    pointers = [
        one.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for one in (point, gradient, value)
    ]
    code = compiled.compiled_logp_func.ctypes(2, *pointers, compiled.user_data.ctypes.data)
    expected, slopes = logp_by_hand(*point)
    assert code == 0
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6)
    draws = nutpie.sample(
        compiled, draws=20, tune=30, chains=1, seed=1, progress_bar=False, cores=1
    )
    assert np.isfinite(draws.posterior["rho"].values).all()
