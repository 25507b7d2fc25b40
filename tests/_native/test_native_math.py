"""`native_math`: functions of vectors, or what Numba calls, for the same bits."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.special import cython_special

import pytensor_fuse
from pytensor_fuse import explain_native
from pytensor_fuse._native.emission.calls import C_NAMES, SCIPY_SINGLE
from pytensor_fuse._native.program.operations import MATHEMATICS
from pytensor_fuse._startup.native_math import native_math_now
from support.processes import run_python, with_disk_cache

NATIVE = {name: name == "native" for name in pytensor_fuse.status()}

NAMES = (
    "exp exp2 expm1 log log2 log10 log1p tanh sinh cosh sin cos tan arctan arcsin arccos arctanh "
    "arcsinh arccosh erf erfc erfcx erfinv gammaln digamma sigmoid softplus log1mexp"
)
FUNCTIONS: dict[str, Any] = {
    **{name: getattr(pt, name) for name in NAMES.split()},
    "gamma": pt.gamma,
    "arctan2": lambda x: pt.arctan2(x, 0.5 - x),
    "pow": lambda x: x ** (x / 4),
    "pow of a literal": lambda x: x**2.5,
    "literal to a power": lambda x: pt.constant(2.0, dtype=x.dtype) ** x,
    "pow of an integer": lambda x: x ** pt.cast(pt.sin(x) * 9, "int8"),
    "pow of a long integer": lambda x: (1 + x / 100000) ** pt.cast(abs(x) * 7000, "int64"),
    "pow of a large literal": lambda x: (1 + x / 1000) ** -700,
    "betainc": lambda x: pt.betainc(abs(x) + 0.5, abs(x) + 1, abs(pt.sin(x))),
    "gammainc": lambda x: pt.gammainc(abs(x), abs(x) + 1),
    "of small integers": lambda x: pt.gammaln(pt.cast(x, "int8")) + pt.exp(pt.cast(x, "int16")),
    "sigmoid of small integers": lambda x: pt.sigmoid(pt.cast(x, "int8")),
    "a fused kernel": lambda x: (x - 3) / (1 + x * x) * pt.log(abs(x) + 1) - pt.exp(-x),
}


def values(dtype: str) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(4711)
    parts = [rng.uniform(0, 1, 300), rng.uniform(-1, 3, 300), rng.uniform(-30, 30, 394)]
    return np.concatenate([*parts, [0.0, -0.0, 1.0, -1.0, 40.0, -40.0]]).astype(dtype)


def same_bits(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    assert one.dtype == other.dtype
    of = {8: np.uint64, 4: np.uint32}[one.dtype.itemsize]
    return bool(((one.view(of) == other.view(of)) | (np.isnan(one) & np.isnan(other))).all())


@pytest.fixture(autouse=True)
def _strict() -> Any:
    with pytensor.config.change_flags(numba__fastmath=False):
        yield


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_are_those_of_numba(name: str, dtype: str) -> None:
    x = pt.vector("x", dtype=dtype)
    out = FUNCTIONS[name](x)
    with pytensor_fuse.enabled(False, **NATIVE):
        theirs = pytensor.function([x], out, mode="NUMBA")
    with pytensor_fuse.enabled(native_math="libm"):
        ours = pytensor.function([x], out, mode="NUMBA")
    assert explain_native(ours).is_native
    given = values(dtype)
    assert given.size == 1000
    assert same_bits(ours(given), theirs(given))


def test_singles_of_scipy_are_those_that_there_are() -> None:
    found = set()
    for name in set(MATHEMATICS) - set(C_NAMES):
        for symbol, capsule in cython_special.__pyx_capi__.items():
            if re.fullmatch(rf"(__pyx_fuse_\d+)?{name}", symbol) and '"float (float' in repr(
                capsule
            ):
                found.add(name)
    assert found == set(SCIPY_SINGLE)


def compiled() -> Any:
    x = pt.vector("x")
    return pytensor.function([x], pt.exp(x) + pt.tanh(x), mode="NUMBA")


def word_of(function: Any) -> str:
    [region] = explain_native(function).regions
    assert ("@exp(" in region.llvm) is (region.native_math == "libm")
    assert ("those that Numba calls" in str(explain_native(function))) is (
        region.native_math == "libm"
    )
    return region.native_math


@pytest.mark.parametrize("cache", [True, False])
def test_it_belongs_to_the_time_of_compiling(cache: bool) -> None:
    assert native_math_now() == "vector"
    with pytensor_fuse.cached(cache):
        found = [word_of(compiled())]
        for _ in range(2):
            with pytensor_fuse.enabled(native_math="libm"):
                inside = compiled()
                found.append(word_of(inside))
                with pytensor_fuse.enabled(joins=False):
                    found.append(word_of(compiled()))
            found.append(word_of(compiled()))
            assert word_of(inside) == "libm"
    assert found == ["vector", *["libm", "libm", "vector"] * 2]


def test_graphs_in_parts_have_it_too() -> None:
    x = pt.matrix("x")
    out = pt.linalg.inv(pt.exp(pt.tanh(x) * 3) + pt.exp(x).sum(axis=0))
    found = []
    for word in ("vector", "libm", "vector"):
        with pytensor_fuse.enabled(native_math=word):
            function = pytensor.function([x], pt.exp(out).sum(axis=0), mode="NUMBA")
        function(np.eye(3))
        found.append({region.native_math for region in explain_native(function).regions})
    assert found == [{"vector"}, {"libm"}, {"vector"}]


def test_enable_holds_until_the_block_ends() -> None:
    with pytensor_fuse.enabled():
        pytensor_fuse.enable(native_math="libm")
        pytensor_fuse.enable()
        assert native_math_now() == "libm"
        pytensor_fuse.disable(**dict.fromkeys(pytensor_fuse.status(), False))
        assert native_math_now() == "libm"
        pytensor_fuse.enable(native_math="vector")
        assert native_math_now() == "vector"
        pytensor_fuse.enable(native_math="libm", native=False)
        assert not pytensor_fuse.is_enabled("native")
    assert native_math_now() == "vector"
    with pytensor_fuse.enabled(False, native_math="libm"):
        assert not pytensor_fuse.is_enabled("native")


@pytest.mark.parametrize("wrong", ["svml", "", "LIBM", True, 3, ["libm"]])
def test_wrong_words(wrong: Any) -> None:
    for switch in (pytensor_fuse.enable, pytensor_fuse.enabled):
        with pytest.raises(ValueError, match="one of vector, libm, not ") as caught:
            switch(native_math=wrong, joins=False)
        assert repr(wrong) in str(caught.value)
    assert pytensor_fuse.is_enabled("joins")
    assert native_math_now() == "vector"


PROGRAM = """
    import sys, warnings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import pytensor, pytensor_fuse
        import numpy as np
        import pytensor.tensor as pt
        x = pt.vector("x")
        f = pytensor.function([x], pt.exp(x) + pt.tanh(x), mode="NUMBA")
    said = [one for one in caught if "PYTENSOR_FUSE_NATIVE_MATH" in str(one.message)]
    [region] = pytensor_fuse.explain_native(f).regions
    from pytensor_fuse._cli.info import information, text_of
    assert information()["native_math"] == region.native_math
    assert region.native_math in text_of(information())
    results = f(np.linspace(0.1, 7, 1000))
    print(region.native_math, region.origin, len(said), results.tobytes().hex())
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [("", "vector 0"), ("libm", "libm 0"), (" LIBM", "libm 0"), ("svml", "vector 1")],
)
def test_the_environment_says_it(value: str, expected: str) -> None:
    environment = {
        **os.environ,
        "PYTENSOR_FUSE_NATIVE_MATH": value,
        "PYTENSOR_FUSE_CACHE": "off",
    }
    word, _, n_said, _ = run_python(PROGRAM, env=environment).stdout.split()
    assert f"{word} {n_said}" == expected


def test_other_processes_with_the_same_disk(tmp_path: Any) -> None:
    words = ("vector", "libm", "vector", "libm")
    found = []
    for word in words:
        env = with_disk_cache(tmp_path, PYTENSOR_FUSE_NATIVE_MATH=word)
        found.append(run_python(PROGRAM, env=env).stdout.split())
    assert [one[0] for one in found] == list(words)
    assert [one[1] for one in found] == ["compiled", "compiled", "disk", "disk"]
    assert found[0][3] == found[2][3] != found[1][3] == found[3][3]


def test_workers_have_the_word_of_their_parent() -> None:
    with (
        pytensor_fuse.enabled(native_math="libm"),
        multiprocessing.get_context("spawn").Pool(1) as pool,
    ):
        assert pool.apply(native_math_now) == "libm"


def test_reports_have_it() -> None:
    with pytensor_fuse.enabled(native_math="libm"):
        found = explain_native(compiled()).to_dict()
    assert json.loads(json.dumps(found))["regions"][0]["native_math"] == "libm"
