"""Errors on a million arguments, against the C library's functions in extended precision.

Extended precision has 64 bits, so an error is known to a thousandth of an ulp; where it is near the
bound, mpmath decides. Functions that the C library lacks are tested in `test_accuracy` alone.
"""

from __future__ import annotations

import ctypes
import os

import llvmlite.binding as llvm
import numpy as np
import pytest

from _native.mathematics import oracle, samples
from _native.mathematics.machine import compiled, initialize
from pytensor_fuse._native.mathematics import FUNCTIONS

COUNT = 1_000_000 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 20_000
ONE = np.longdouble(1)


def _sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, ONE, e) / (ONE + e)


def _softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _log1mexp(x):
    return np.where(x > -0.7, np.log(-np.expm1(np.maximum(x, -1))), np.log1p(-np.exp(x)))


_OF_NUMPY = (
    "exp exp2 expm1 log log2 log10 log1p tanh sinh cosh sin cos tan arctan arcsin arccos arctanh "
    "arcsinh arccosh sqrt"
)


def _of_c(name):
    """Return a function of the C library in extended precision that NumPy lacks.

    Compiled code calls it, because ctypes rounds arguments and results to doubles.
    """

    def of(x):
        initialize()
        address = ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
        llvm.add_symbol(name, address)
        text = f"""
            declare x86_fp80 @{name}(x86_fp80)
            define void @run(ptr %in, ptr %out, i64 %n) {{
            entry:
              br label %loop
            loop:
              %i = phi i64 [0, %entry], [%next, %loop]
              %p = getelementptr x86_fp80, ptr %in, i64 %i
              %x = load x86_fp80, ptr %p
              %y = call x86_fp80 @{name}(x86_fp80 %x)
              %q = getelementptr x86_fp80, ptr %out, i64 %i
              store x86_fp80 %y, ptr %q
              %next = add i64 %i, 1
              %more = icmp slt i64 %next, %n
              br i1 %more, label %loop, label %done
            done:
              ret void
            }}"""
        machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
        engine.finalize_object()
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
            engine.get_function_address("run")
        )
        out = np.empty_like(x)
        run(x.ctypes.data, out.ctypes.data, x.size)
        return out

    return of


EXTENDED = {
    **{name: getattr(np, name) for name in _OF_NUMPY.split()},
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "log1mexp": _log1mexp,
    "erf": _of_c("erfl"),
    "erfc": _of_c("erfcl"),
    "gammaln": _of_c("lgammal"),
    "gamma": _of_c("tgammal"),
}

needs_extended = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant != 63, reason="the processor has no extended precision"
)


def errors(found, exact):
    """Return the errors in units of the last place; 0 where the result is tiny or huge."""
    with np.errstate(all="ignore"):
        last = np.spacing(np.abs(exact.astype(np.float64))).astype(np.longdouble)
        off = np.abs(found.astype(np.longdouble) - exact) / last
    # Thresholds and subnormal numbers are left to mpmath.
    size = np.abs(exact)
    return np.where((size > 1e-300) & (size < 1e308), off, 0)


def check(name, found, exact, *arguments):
    bound = FUNCTIONS[name].ulp
    off = errors(found, exact)
    assert np.count_nonzero(off) > off.size // 4
    for k in np.flatnonzero(~(off < bound - 0.01)):
        row = [float(column[k]) for column in arguments]
        error = oracle.error(float(found[k]), oracle.exact(name, *row))
        assert error <= bound, (name, [x.hex() for x in row], error)


@needs_extended
@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("name", EXTENDED)
def test_errors(name, fma):
    x = samples.arguments(name, COUNT, seed=7)
    if name in ("sin", "cos", "tan"):
        # The extended functions reduce angles by 66 bits of pi only.
        x = x[np.abs(x) < 1e4]
    with np.errstate(all="ignore"):
        exact = EXTENDED[name](x.astype(np.longdouble))
    check(name, compiled(name, fma=fma)(x), exact, x)


@needs_extended
@pytest.mark.parametrize("fma", [True, False])
def test_errors_of_powers(fma):
    x, y = samples.power_arguments(COUNT, seed=7)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    check("pow", compiled("pow", fma=fma)(x, y), exact, x, y)
