"""`native_math`: vector functions, or the functions that Numba calls, for the same bits."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import re
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.scalar.math as psm
import pytensor.tensor as pt
import pytest
from pytensor.tensor.elemwise import Elemwise
from scipy.special import cython_special

import pytensor_fuse
from pytensor_fuse import explain
from pytensor_fuse._native.emission.calls import C_NAMES, SCIPY_SINGLE
from pytensor_fuse._native.lowering import rules
from pytensor_fuse._native.lowering.scalars.registry import scalar_refusal, scalar_rule
from pytensor_fuse._native.program.operations import MATHEMATICS
from pytensor_fuse._startup.features import native_math_now
from support.numba_only import IMPORT, numba_inverse
from support.programs.processes import run_python, with_disk_cache
from support.switching import switched

# The import registers them.
_RULES = rules
NATIVE = {name: name == "native" for name in pytensor_fuse.status()}

NAMES = (
    "exp exp2 expm1 log log2 log10 log1p tanh sinh cosh sin cos tan arctan arcsin arccos arctanh "
    "arcsinh arccosh erf erfc erfcx erfinv gammaln digamma sigmoid softplus log1mexp"
)
FUNCTIONS: dict[str, Any] = {
    **{name: getattr(pt, name) for name in NAMES.split()},
    "gamma": pt.gamma,
    "polygamma of order 0": lambda x: pt.polygamma(0, x),
    "square by a float": lambda x: x**2.0,
    "cube by a float": lambda x: x**3.0,
    "inverse square": lambda x: x**-2.0,
    "a tenth to a power": lambda x: pt.constant(10.0, dtype=x.dtype) ** x,
    "softplus of small integers": lambda x: pt.softplus(pt.cast(x, "int8")),
    "remainder of itself": lambda x: pt.cast(pt.cast(x, "int8"), x.dtype) % -1.0,
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
    of = np.dtype(f"u{one.dtype.itemsize}")
    is_same = one.view(of) == other.view(of)
    return bool((is_same | ((one != one) & (other != other))).all())


@pytest.fixture(autouse=True)
def _strict() -> Any:
    with pytensor.config.change_flags(numba__fastmath=False):
        yield


@pytest.mark.every(2)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_are_those_of_numba(name: str, dtype: str) -> None:
    x = pt.vector("x", dtype=dtype)
    out = FUNCTIONS[name](x)
    with switched(False, **NATIVE):
        theirs = pytensor.function([x], out, mode="NUMBA")
    with pytensor_fuse.enabled(native_math="libm"):
        ours = pytensor.function([x], out, mode="NUMBA")
    assert explain(ours, "native").is_native
    given = values(dtype)
    assert given.size == 1000
    assert same_bits(ours(given), theirs(given))


# Ops that move numbers, contain graphs, or work on integers alone; and ops whose bits differ
# anyway, as documented in the page on vector mathematics, or that take an order: polygamma is
# tested below.
NOT_OF_NUMBERS = "Cast Composite Conj Identity Real ScalarLoop Second Switch"
OF_INTEGERS = "AND OR XOR Invert"
OTHER = "PolyGamma TriGamma"


def ops_of_floats() -> dict[str, Any]:
    """Return all scalar ops that have a rule, by the names of their classes."""
    left_out = {"object", "ScalarOp", *NOT_OF_NUMBERS.split(), *OF_INTEGERS.split(), *OTHER.split()}
    known = [*vars(ps).values(), *vars(psm).values(), pt.math.mul_without_zeros]
    ops = {type(one).__name__: one for one in known if isinstance(one, ps.ScalarOp)}
    unknown = {kind.__name__ for kind in scalar_rule.registry} - ops.keys() - left_out
    assert all(issubclass(getattr(ps, name), ps.ScalarOp) for name in unknown), unknown
    return {name: op for name, op in ops.items() if name not in left_out and refusal_of(op) is None}


def refusal_of(op: Any) -> str | None:
    """Return the reason why a scalar op of floats has no rule, or None."""
    n_operands = op.nin if op.nin > 0 else 2
    return scalar_refusal(op, op.make_node(*[ps.float64()] * n_operands))


OPS = ops_of_floats()


def given_for(name: str, arity: int, dtype: str) -> list[np.ndarray[Any, Any]]:
    """Return arguments of an op: random ones, and all combinations of special ones."""
    rng = np.random.default_rng(815)
    columns = []
    for _ in range(arity):
        parts = [rng.uniform(0, 1, 200), rng.uniform(-30, 30, 200), rng.uniform(-150, 800, 200)]
        columns.append(rng.permutation(np.concatenate([*parts, np.exp(rng.uniform(-60, 60, 195))])))
    special = [0.0, -0.0, 0.5, 1.0, -1.0, 2.5, -3.5, 4.0, 40.0, np.inf, -np.inf, np.nan]
    grid = zip(*product(special, repeat=arity), strict=True)
    columns = [np.concatenate([one, more]) for one, more in zip(columns, grid, strict=True)]
    with np.errstate(invalid="ignore"):
        if name.startswith("BetaInc"):
            columns = [abs(columns[0]) % 30 + 0.5, abs(columns[1]) % 30 + 0.5, columns[2] % 1]
        elif name.startswith("GammaInc"):
            columns[0] = abs(columns[0])
        elif name in ("Ive", "Jv", "Kve"):
            columns[0] = np.nan_to_num(np.rint(columns[0]) % 4)
        elif name == "Hyp2F1":
            # SciPy takes seconds for larger arguments.
            columns = [np.nan_to_num(one % 3) + 0.5 for one in columns]
            columns[3] = np.sin(columns[3]) * 0.9
    return [one.astype(dtype) for one in columns]


def test_all_ops_of_floats_are_known() -> None:
    assert len(OPS) > 60


@pytest.mark.every(2)
@pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", OPS)
def test_bits_of_each_op(name: str) -> None:
    op = OPS[name]
    arity = 3 if name == "Clip" else op.nfunc_spec[1] if hasattr(op, "nfunc_spec") else op.nin
    variables, outs, given = [], [], []
    for dtype in ("float64", "float32"):
        vectors = [pt.vector(dtype=dtype) for _ in range(arity)]
        scalars = [pt.scalar(dtype=dtype) for _ in range(arity)]
        one = Elemwise(op)
        # In a loop, on a scalar, on a scalar that a loop broadcasts, and on a value that is
        # computed in the same loop.
        of_numbers = one(*scalars)
        outs += [one(*vectors), of_numbers, vectors[0] * pt.cast(of_numbers, dtype)]
        outs.append(one(*[vector * scalars[0] for vector in vectors]))
        variables += vectors + scalars
        given.append(given_for(name, arity, dtype))
    with switched(False, **NATIVE):
        theirs = pytensor.function(variables, outs, mode="NUMBA")
    with pytensor_fuse.enabled(native_math="libm"):
        ours = pytensor.function(variables, outs, mode="NUMBA")
    assert explain(ours, "native").is_native
    for place in (0, 17, 400, -3, -14, -40):
        called = [
            argument
            for columns in given
            for argument in [*columns, *[np.asarray(column[place]) for column in columns]]
        ]
        for number, (this, that) in enumerate(zip(ours(*called), theirs(*called), strict=True)):
            assert same_bits(this, that), (number, place)


SMALL = ["bool", "int8", "uint8", "int16", "uint16"]


@pytest.mark.parametrize("dtypes", list(product(SMALL, repeat=2)))
def test_quotients_of_small_integers(dtypes: tuple[str, str]) -> None:
    """Numba divides in single precision if singles represent all numbers of the dtypes."""
    given = [
        np.array([one for one in (0, 1, 3, 7, -5, 100, 127) if one >= 0 or dtype[0] == "i"], dtype)
        for dtype in dtypes
    ]
    x, y = [pt.vector(dtype=dtype) for dtype in dtypes]
    out = pt.true_div(x[:, None], y)
    with pytensor.config.change_flags(numba__fastmath=False):
        with switched(False, **NATIVE):
            theirs = pytensor.function([x, y], out, mode="NUMBA")(*given)
        with pytensor_fuse.enabled(native_math="libm"):
            ours = pytensor.function([x, y], out, mode="NUMBA")(*given)
    assert same_bits(ours, theirs)


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
    [region] = explain(function, "native").regions
    assert ("@exp(" in region.llvm) is (region.native_math == "libm")
    assert ("those that Numba calls" in str(explain(function, "native"))) is (
        region.native_math == "libm"
    )
    return region.native_math


@pytest.mark.parametrize("cache", [True, False])
def test_it_belongs_to_the_time_of_compiling(cache: bool) -> None:
    assert native_math_now() == "vector"
    with pytensor_fuse.enabled(cache, "cache"):
        found = [word_of(compiled())]
        for _ in range(2):
            with pytensor_fuse.enabled(native_math="libm"):
                inside = compiled()
                found.append(word_of(inside))
                with switched(joins=False):
                    found.append(word_of(compiled()))
            found.append(word_of(compiled()))
            assert word_of(inside) == "libm"
    assert found == ["vector", *["libm", "libm", "vector"] * 2]


@pytest.mark.parametrize("cache", [True, False])
def test_a_pickled_function_is_compiled_by_the_word_of_who_loads_it(cache: bool) -> None:
    with pytensor_fuse.enabled(cache, "cache"):
        with pytensor_fuse.enabled(native_math="libm"):
            pickled = pickle.dumps(compiled())
        assert word_of(pickle.loads(pickled)) == "vector"
        with pytensor_fuse.enabled(native_math="libm"):
            assert word_of(pickle.loads(pickled)) == "libm"


def test_threads_that_compile_while_the_word_changes() -> None:
    def compile_some(number: int) -> list[tuple[str, str]]:
        found = []
        for step in range(6):
            x = pt.vector("x")
            out = pt.exp(x) + pt.tanh(x) * (1 + number % 2 + step % 3)
            function = pytensor.function([x], out, mode="NUMBA")
            [region] = explain(function, "native").regions
            values = function(np.linspace(0.1, 7, 1000)).tobytes()
            found.append((region.native_math, f"{number % 2} {step % 3} {values.hex()}"))
            assert ("@exp(" in region.llvm) is (region.native_math == "libm")
        return found

    with ThreadPoolExecutor(4) as pool, pytensor_fuse.enabled():
        waiting = [pool.submit(compile_some, number) for number in range(4)]
        while not all(one.done() for one in waiting):
            for word in ("libm", "vector"):
                pytensor_fuse.enable(native_math=word)
                # Long enough for the other threads to run.
                time.sleep(0.02)
        found = {pair for one in waiting for pair in one.result()}
    # The code of a graph depends only on its word.
    keys = [(word, text[:3]) for word, text in found]
    assert len(keys) == len(set(keys))


VERIFIED = """
    import numpy as np, pytensor, pytensor.tensor as pt, pytensor_fuse
    IMPORT
    x, m = pt.vector("x"), pt.matrix("m")
    part = numba_inverse(pt.exp(pt.tanh(m) * 3) + pt.eye(3)) + pt.log1p(pt.exp(m)).sum(axis=0)
    for out, given in ((pt.exp(x) + pt.gammaln(x), np.arange(9.0) + 1), (part, np.eye(3))):
        f = pytensor.function([x if out is not part else m], out, mode="NUMBA")
        f(given)
        found = pytensor_fuse.explain(f, "native")
        print(type(f.vm).__name__, *{one.native_math for one in found.regions})
"""


def test_verified_functions() -> None:
    env = {
        **os.environ,
        "PYTENSOR_FUSE_NATIVE": "verify",
        "PYTENSOR_FUSE_NATIVE_MATH": "libm",
        "PYTENSOR_FUSE_CACHE": "off",
    }
    assert (
        run_python(VERIFIED.replace("IMPORT", IMPORT), env=env).stdout.splitlines()
        == ["VerifiedThunk libm"] * 2
    )


def test_graphs_in_parts_have_it_too() -> None:
    x = pt.matrix("x")
    out = numba_inverse(pt.exp(pt.tanh(x) * 3) + pt.exp(x).sum(axis=0))
    found = []
    for word in ("vector", "libm", "vector"):
        with pytensor_fuse.enabled(native_math=word):
            function = pytensor.function([x], pt.exp(out).sum(axis=0), mode="NUMBA")
        function(np.eye(3))
        found.append({region.native_math for region in explain(function, "native").regions})
    assert found == [{"vector"}, {"libm"}, {"vector"}]


def test_enable_holds_until_the_block_ends() -> None:
    with pytensor_fuse.enabled():
        pytensor_fuse.enable(native_math="libm")
        pytensor_fuse.enable()
        assert native_math_now() == "libm"
        pytensor_fuse.disable("joins")
        assert native_math_now() == "libm"
        pytensor_fuse.enable(native_math="vector")
        assert native_math_now() == "vector"
        pytensor_fuse.enable(native_math="libm")
        pytensor_fuse.disable("native")
        assert not pytensor_fuse.status()["native"].is_on
    assert native_math_now() == "vector"
    with pytensor_fuse.enabled(False, native_math="libm"):
        assert not pytensor_fuse.status()["native"].is_on


@pytest.mark.parametrize("wrong", ["svml", "", "LIBM", True, 3, ["libm"]])
def test_wrong_words(wrong: Any) -> None:
    for switch in (pytensor_fuse.enable, pytensor_fuse.enabled):
        with pytest.raises(ValueError, match="one of vector, libm, not ") as caught:
            switch("fusion", native_math=wrong)
        assert repr(wrong) in str(caught.value)
    assert pytensor_fuse.status()["joins"].is_on
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
    [region] = pytensor_fuse.explain(f, "native").regions
    assert pytensor_fuse.info().native_math == region.native_math
    assert region.native_math in str(pytensor_fuse.info())
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
    word, _, n_said, _ = run_python(
        PROGRAM.replace("IMPORT", IMPORT), env=environment
    ).stdout.split()
    assert f"{word} {n_said}" == expected


def test_other_processes_with_the_same_disk(tmp_path: Any) -> None:
    words = ("vector", "libm", "vector", "libm")
    found = []
    for word in words:
        env = with_disk_cache(tmp_path, PYTENSOR_FUSE_NATIVE_MATH=word)
        found.append(run_python(PROGRAM.replace("IMPORT", IMPORT), env=env).stdout.split())
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
        found = explain(compiled(), "native").to_dict()
    assert json.loads(json.dumps(found))["regions"][0]["native_math"] == "libm"
