"""Functions as libraries: linked by the C compiler, and run without Python."""

from __future__ import annotations

import ctypes
import math
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy
from hypothesis import given
from pytensor.compile.io import In
from pytensor.raise_op import Assert

from pytensor_fuse._native.c_entry.function import native_graph
from pytensor_fuse._native.emission.c.function import CInterface
from pytensor_fuse._native.emission.c.library import (
    library_modules,
    linked_name,
)
from pytensor_fuse._native.emission.layout import Argument, Returned
from pytensor_fuse._native.emission.module import Module
from pytensor_fuse._native.runtime.c_compiler import c_compiler, library_name, link_library
from pytensor_fuse._native.runtime.llvm import library_object
from pytensor_fuse.exceptions import NativeLinkError
from pytensor_fuse.native import compile_c, export_c
from support.effort import examples
from support.native.functions import kind, native_function
from support.native.graphs.steps import build
from support.native.graphs.writing import Program, programs

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("cc") is None, reason="there is no C compiler"
)

STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]


class Loaded:
    """An exported library, called like its `CEntry`."""

    def __init__(self, files: Any, name: str, entry: Any) -> None:
        library = ctypes.CDLL(str(files.library))
        self.function = getattr(library, name)
        self.function.restype = ctypes.c_int64
        self.exception = getattr(library, f"{name}_exception")
        self.exception.restype = ctypes.c_char_p
        self.exception.argtypes = [ctypes.c_int64]
        self._message = getattr(library, f"{name}_message")
        self._message.restype = ctypes.c_size_t
        self._message.argtypes = [ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_size_t]
        self.outputs = entry.outputs

    def message(self, code: int, details: Any = None, size: int = 1000) -> tuple[int, str]:
        numbers = None if details is None else (ctypes.c_int64 * 8)(*details)
        text = ctypes.create_string_buffer(b"?" * 1000)
        n = self._message(code, numbers, text, size)
        return n, text.value.decode()

    def __call__(self, *arrays: np.ndarray) -> Any:
        """Return the outputs, or the code and the details."""
        lengths = [length for one in arrays for length in one.shape]
        kept = (ctypes.c_int64 * 100)()
        details = (ctypes.c_int64 * 8)()
        memory = [np.empty(4096, one.dtype) for one in self.outputs]
        code = self.function(
            (ctypes.c_void_p * 100)(*[one.ctypes.data for one in arrays]),
            (ctypes.c_int64 * 100)(*lengths),
            (ctypes.c_void_p * 100)(*[one.ctypes.data for one in memory]),
            (ctypes.c_int64 * 100)(*[4096] * len(memory)),
            kept,
            details,
        )
        if code != 0:
            return code, list(details)
        found, first = [], 0
        for about, one in zip(self.outputs, memory, strict=True):
            shape = tuple(kept[first : first + len(about.shape)])
            first += len(shape)
            found.append(one[: math.prod(shape)].reshape(shape))
        return found


def exported(function: Any, folder: Path, **options: Any) -> Loaded:
    files = export_c(function, folder, **options)
    shared = options.get("shared", "values")
    return Loaded(files, options.get("name", "model"), compile_c(function, shared=shared))


def result_of(function: Any, arrays: Any) -> Any:
    try:
        return function(*arrays)
    except Exception as error:
        return error


def require_same(found: Any, expected: Any) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in an environment without Python."""
    env = {"PATH": os.environ["PATH"]}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def simple(about: Any) -> np.ndarray:
    """Return the values with which the example fills an input."""
    shape = tuple(3 if one is None else one for one in about.shape)
    i = np.arange(math.prod(shape))
    numbers = 1 / (i + 1) if about.dtype.startswith("float") else i % 2
    if about.dtype == "float32":
        numbers = np.float32(1) / (i + 1).astype("f4")
    return numbers.astype(about.dtype).reshape(shape)


@pytest.mark.parametrize("build_with", ["cc", "make"])
def test_the_example_prints_what_the_function_gives(tmp_path: Path, build_with: str) -> None:
    """Data, scratch memory, lengths that are computed, and all kinds of dtypes."""
    x, y = kind("float64", None, 2)("x"), kind("float32", None)("y")
    i, mask = kind("int8", 2)("a */ name"), pt.bscalar().astype("bool").type("mask")
    data = np.linspace(0.0, 1.0, 1000)
    shift = pytensor.shared(np.array([0.5, 0.25]), name="shift")
    scaled = pt.exp(x) + shift
    outputs = [
        scaled / scaled.sum(axis=0),
        pt.concatenate([y, y, y, y]) * 2,
        (x.sum() * pt.as_tensor(data)).sum(),
        i.astype("uint16") + 1,
        mask & (i > 0),
    ]
    function = native_function([x, y, i, mask], outputs)
    export_c(function, tmp_path / "new" / "folder", name="example_of_all")
    folder = tmp_path / "new" / "folder"
    assert sorted(one.name for one in folder.iterdir()) == sorted(
        ["Makefile", "example.c", "example_of_all.h", library_name("example_of_all")]
    )
    if build_with == "make":
        if shutil.which("make") is None:
            pytest.skip("there is no make")
        built = run(["make", f"CFLAGS={' '.join(STRICT)}"], folder)
    else:
        library = folder / library_name("example_of_all")
        found_by = f"-Wl,-rpath,{folder}"
        command = ["cc", *STRICT, "example.c", str(library), found_by, "-o", "example"]
        built = run(command, folder)
    assert built.returncode == 0, built.stderr
    done = run(["./example"], folder)
    assert (done.returncode, done.stderr) == (0, "")
    entry = compile_c(function)
    expected = entry(*map(simple, entry.inputs))
    lines = done.stdout.splitlines()
    assert len(lines) == len(expected) == 5
    for number, (line, one) in enumerate(zip(lines, expected, strict=True)):
        head, *elements = line.removeprefix(f"output {number}: ").split()
        assert re.findall(r"\[(\d+)\]", head) == [str(length) for length in one.shape]
        found = np.array([float(each) for each in elements]).astype(one.dtype)
        require_same(found.reshape(one.shape), one)
    stock = pytensor.function([x, y, i, mask], outputs, mode="FAST_COMPILE")
    for one, other in zip(expected, stock(*map(simple, entry.inputs)), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("language", [STRICT, ["-x", "c++", "-Wall", "-Werror"]])
def test_the_header_is_c_and_cpp(tmp_path: Path, language: list[str]) -> None:
    x = pt.vector("x")
    files = export_c(native_function([x], x * 2), tmp_path)
    (tmp_path / "user.c").write_text('#include "model.h"\nint64_t (*f)(int64_t);\n')
    done = run(["cc", *language, "-fsyntax-only", "user.c"], tmp_path)
    if "c++" in language and "cc1plus" in done.stderr:
        pytest.skip("there is no compiler of C++")
    assert done.returncode == 0, done.stderr
    text = files.header.read_text()
    assert "0 (x): double[?], lengths 0" in text
    assert "#define MODEL_N_LENGTHS 1" in text


def test_the_library_needs_no_python_and_shows_three_functions(tmp_path: Path) -> None:
    x = pt.vector("x")
    files = export_c(native_function([x], pt.exp(x) * np.arange(9.0)[:, None]), tmp_path, name="f")
    if sys.platform != "linux" or shutil.which("nm") is None or shutil.which("ldd") is None:
        pytest.skip("what the library needs is asked of tools of Linux")
    shown = run(["nm", "--dynamic", "--defined-only", files.library.name], tmp_path).stdout
    assert {line.split()[-1] for line in shown.splitlines()} == {"f", "f_exception", "f_message"}
    assert "python" not in run(["ldd", str(files.library)], tmp_path).stdout


@examples(0.5)
@given(programs(most_steps=6))
def test_random_graphs_give_what_the_function_gives(
    tmp_path_factory: pytest.TempPathFactory, program: Program
) -> None:
    case = build(program)
    inputs = [In(one, mutable=True) for one in case.inputs]
    options: dict[str, Any] = {"on_unused_input": "ignore", "accept_inplace": True}
    try:
        function = pytensor.function(inputs, case.outputs, mode="NATIVE", **options)
        loaded = exported(function, tmp_path_factory.mktemp("exported"))
    except Exception:  # Missing rules and PyTensor's own failures are not the subject of this test.
        return
    found, expected = loaded(*case.values), result_of(compile_c(function), case.values)
    if isinstance(expected, Exception):
        code, details = found
        assert loaded.exception(code).decode() == type(expected).__name__
        assert code < 0 or loaded.message(code, details)[1] == str(expected)
        return
    for one, other in zip(found, expected, strict=True):
        require_same(one, other)


def test_failures_have_their_messages(tmp_path: Path) -> None:
    text = 'say "100%d" {0} {{1}} \\ ??= é\n of it'
    x, i, known = pt.vector("x"), pt.lscalar("i"), kind("float64", 2)("k")
    y = pt.vector("y")
    function = native_function(
        [x, i, y, known], [Assert(text)(x, pt.all(x > 0))[i], x * y, known * 2]
    )
    loaded, entry = exported(function, tmp_path), compile_c(function)
    good = [np.ones(3), np.array(1), np.ones(3), np.ones(2)]
    assert len(loaded(*good)) == 3
    bad = [
        [-np.ones(3), np.array(1), np.ones(3), np.ones(2)],
        [np.ones(3), np.array(7), np.ones(3), np.ones(2)],
        [np.ones(3), np.array(0), np.ones(4), np.ones(2)],
        [np.ones(3), np.array(0), np.ones(3), np.ones(5)],
    ]
    seen = []
    for arrays in bad:
        code, details = loaded(*arrays)
        error = entry.error(code, details)
        seen.append(str(error))
        assert loaded.message(code, details) == (len(str(error).encode()), str(error))
        assert loaded.exception(code).decode() == type(error).__name__
    assert len(set(seen)) == 4
    assert text in seen
    size, cut = loaded.message(-3, [0, 1, 2, 3, 0, 0, 0, 0], 10)
    assert (size, cut) == (len("input 0: axis 1 must have length 2, not 3"), "input 0: ")
    for code in (-1, -2, -3, -4):
        assert loaded.message(code)[1] == str(entry.error(code))
        assert loaded.exception(code).decode() == type(entry.error(code)).__name__
    assert loaded.message(-3, [0, 1, -1, -5, 0, 0, 0, 0])[1] == str(entry.error(-3, [0, 1, -1, -5]))
    details = [1, 2, -3, 0, 0, 0, 0, 0]
    assert loaded.message(-4, details)[1] == str(entry.error(-4, details))
    assert loaded.message(99) == (21, "there is no such code")
    assert (loaded.message(0)[1], loaded.exception(99)) == ("no failure", b"")


def test_shared_variables_may_be_left_to_the_caller(tmp_path: Path) -> None:
    x, scale = pt.vector("x"), pytensor.shared(np.full(3, 2.0), name="scale")
    function = native_function([x], x * scale)
    [bound] = exported(function, tmp_path, name="bound")(np.ones(3))
    require_same(bound, np.full(3, 2.0))
    left = exported(function, tmp_path, name="left", shared="inputs")
    require_same(left(np.ones(3), np.full(3, 5.0))[0], np.full(3, 5.0))


def test_data_may_be_large(tmp_path: Path) -> None:
    """This includes a last vector that reads beyond the data."""
    x = kind("float64", 100_003)("x")
    data = np.random.default_rng(0).normal(size=100_003)
    function = native_function([x], (x * data).sum())
    [found] = exported(function, tmp_path)(np.ones(100_003))
    require_same(found, np.asarray(function(np.ones(100_003))))


def test_functions_of_scipy_are_refused(tmp_path: Path) -> None:
    x = pt.vector("x")
    function = native_function([x], pt.gammainc(x, 2.0))
    with pytest.raises(NativeLinkError, match="this one calls SciPy for: gammainc"):
        export_c(function, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    found = [linked_name(one) for one in ("scipy.psi", "blas.ddot", "lapack.dpotrf")]
    assert found == [None, "ddot_", "dpotrf_"]


def test_what_cannot_be_exported_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    x, state = pt.vector("x"), pytensor.shared(0.0, name="state")
    function = native_function([x], x * 2)
    for name in ("", "1st", "a-b", "é", "a b"):
        with pytest.raises(ValueError, match="name must be an identifier of C"):
            export_c(function, tmp_path, name=name)
    with pytest.raises(ValueError, match="export_c takes a function without updates"):
        export_c(native_function([x], x, updates={state: state + 1}), tmp_path)
    with pytest.raises(FileNotFoundError, match="no C compiler 'there-is-no-such-compiler'"):
        export_c(function, tmp_path, compiler="there-is-no-such-compiler")
    monkeypatch.setenv("CC", "nor-this-one -O2")
    with pytest.raises(FileNotFoundError, match="no C compiler 'nor-this-one -O2'"):
        export_c(function, tmp_path)
    monkeypatch.delenv("CC")
    with pytest.raises(RuntimeError, match=r"the C compiler has failed: cc .*no_such_library"):
        export_c(function, tmp_path, libraries=["-lno_such_library"])
    assert list(tmp_path.iterdir()) == []


TAKEN = {
    "must be unused in C": [
        *("exp", "free", "main", "lengths", "size_t", "int64_t", "uint_fast8_t", "stdout", "NULL"),
        *("EOF", "INT64_MAX", "PRId64", "FILE", "offsetof"),
    ],
    "a word of C or C..": ["int", "if", "double", "inline", "class", "template"],
    "must not begin with _": ["_name", "__x", "_handle"],
    "that of a library": ["c", "m", "others"],
}


@pytest.mark.parametrize(
    ("name", "why"), [(name, why) for why, names in TAKEN.items() for name in names]
)
def test_names_that_are_taken_are_refused(tmp_path: Path, name: str, why: str) -> None:
    x = pt.vector("x")
    function = native_function([x], x * 2)
    with pytest.raises(ValueError, match=f"{why}.*'{name}'"):
        export_c(function, tmp_path, name=name, libraries=["-lothers"])
    assert list(tmp_path.iterdir()) == []


BLAS = """\
declare double @blas.ddot(ptr, ptr, ptr, ptr, ptr)
declare i32 @"lapack.dtwice"(ptr, ptr)
define i64 @entry(ptr %inputs, ptr %dims, ptr %constants, ptr %context) nounwind {
  %n = alloca i32
  store i32 3, ptr %n
  %one = alloca i32
  store i32 1, ptr %one
  %x = load ptr, ptr %inputs
  %y = load ptr, ptr %constants
  %allocate = load ptr, ptr %context
  %out = call ptr %allocate(ptr %context, i64 0, ptr null)
  %dot = call double @blas.ddot(ptr %n, ptr %x, ptr %one, ptr %y, ptr %one)
  store double %dot, ptr %out
  %done = call i32 @"lapack.dtwice"(ptr %n, ptr %out)
  ret i64 0
}
"""
OTHERS = """\
double ddot_(const int *n, const double *x, const int *dx, const double *y, const int *dy)
{
    double total = 0;
    for (int i = 0; i < *n; i++)
        total += x[i * *dx] * y[i * *dy];
    return total;
}

int dtwice_(const int *n, double *x)
{
    *x *= 2;
    return *n;
}
"""


def test_linear_algebra_is_that_of_the_libraries_that_are_named(tmp_path: Path) -> None:
    """A library that follows Fortran's conventions stands in for BLAS and LAPACK."""
    (tmp_path / "others.c").write_text(OTHERS)
    made = run(["cc", "-shared", "-fPIC", "others.c", "-o", library_name("others")], tmp_path)
    assert made.returncode == 0, made.stderr
    constant = np.array([1.0, 10.0, 100.0])
    interface = CInterface((Argument("float64", (3,)),), (Returned("float64", 0),))
    module = Module(BLAS, ("blas.ddot", "lapack.dtwice"), ())
    modules = library_modules("dot", interface, module, [constant.tobytes()], [])
    parts = []
    for name, text in modules.items():
        parts.append(tmp_path / f"{name}.o")
        parts[-1].write_bytes(library_object(text))
    path, options = tmp_path / library_name("dot"), [f"-L{tmp_path}", f"-Wl,-rpath,{tmp_path}"]
    with pytest.raises(RuntimeError, match="ddot_"):
        link_library(c_compiler(None), parts, path, [])
    link_library(c_compiler(None), parts, path, [*options, "-lothers"])
    x, out = np.array([1.0, 2.0, 3.0]), np.empty(())
    code = ctypes.CDLL(str(path)).dot(
        (ctypes.c_void_p * 1)(x.ctypes.data),
        (ctypes.c_int64 * 1)(3),
        (ctypes.c_void_p * 1)(out.ctypes.data),
        (ctypes.c_int64 * 1)(1),
        None,
        None,
    )
    assert (code, float(out)) == (0, 642.0)


def openblas_of_scipy() -> Path:
    """Return the library of SciPy's wheel."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(
            "what gives SciPy's library the names of Fortran is written for x86-64 on Linux"
        )
    found = sorted((Path(scipy.__file__).parents[1] / "scipy.libs").glob("libscipy_openblas*.so"))
    if not found:
        pytest.skip("this SciPy has no OpenBLAS of its own")
    return found[0]


def log_density() -> Any:
    """Return a function that factorizes a matrix and solves with it, and computes the gradients."""
    covariance, y = pt.matrix("covariance"), pt.vector("y")
    factor = pt.linalg.cholesky(covariance)
    white = pt.linalg.solve_triangular(factor, y, lower=True)
    value = -0.5 * (white**2).sum() - pt.log(pt.diagonal(factor)).sum()
    inputs, outputs = [covariance, y], [value, pt.grad(value, covariance)]
    return inputs, outputs, native_function(inputs, outputs)


def test_a_density_of_linear_algebra_runs_without_python(tmp_path: Path) -> None:
    library = openblas_of_scipy()
    inputs, outputs, function = log_density()
    called = [one for one in map(linked_name, externals_of(function)) if one is not None]
    assert "dpotrf_" in called
    shim = tmp_path / "shim.c"
    jumps = [f'__asm__(".globl {one}\\n{one}: jmp scipy_{one}@PLT\\n");' for one in called]
    shim.write_text("\n".join(jumps))
    libraries = [str(shim), str(library), f"-Wl,-rpath,{library.parent}"]
    with pytest.raises(ValueError, match="one of a function that this one calls: 'dpotrf_'"):
        export_c(function, tmp_path / "none", name="dpotrf_", libraries=libraries)
    folder = tmp_path / "density"
    files = export_c(function, folder, name="density", libraries=libraries)
    command = ["cc", *STRICT, "example.c", str(files.library), "-o", "example"]
    # The library finds its own dependencies when it is loaded.
    command += [f"-Wl,-rpath,{folder}", f"-Wl,-rpath-link,{library.parent}"]
    built = run(command, folder)
    assert built.returncode == 0, built.stderr
    done = run(["./example"], folder)
    assert (done.returncode, done.stderr) == (0, "")
    entry = compile_c(function)
    # The factorization reads one triangle, so the example's values form a covariance matrix.
    expected = entry(*map(simple, entry.inputs))
    for line, one in zip(done.stdout.splitlines(), expected, strict=True):
        found = [float(each) for each in line.split(":")[1].split()[1:]]
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, one.ravel())
    loaded = Loaded(files, "density", entry)
    stock = pytensor.function(inputs, outputs, mode="FAST_COMPILE")
    rng = np.random.default_rng(0)
    for n in (1, 2, 40):
        square = rng.normal(size=(n, n))
        arrays = square @ square.T + n * np.eye(n), rng.normal(size=n)
        for one, other in zip(loaded(*arrays), stock(*arrays), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("libraries", [["-nostdlib"], ["-lno_such_library"]])
def test_linear_algebra_that_is_not_found_is_told(tmp_path: Path, libraries: list[str]) -> None:
    function = log_density()[-1]
    with pytest.raises(RuntimeError) as raised:
        export_c(function, tmp_path, libraries=libraries)
    said = str(raised.value)
    assert re.match(r"the function calls dpotr\w*_, .* of BLAS and LAPACK", said), said
    for word in ("libraries=", "liblapack-dev", "libopenblas-dev", "-Wl,-rpath", "scipy_dpotr"):
        assert word in said
    assert list(tmp_path.iterdir()) == []


def test_characters_have_their_lengths_as_fortran_passes_them() -> None:
    function = log_density()[-1]
    graph = native_graph("test", function, "values")
    code = library_modules("f", graph.interface, graph.compiled.module, [], [])["code"]
    assert "declare void @dpotrf_(ptr, ptr, ptr, ptr, ptr, i64)" in code
    assert re.search(r"call void @dpotrf_\((ptr %\w+, ){5}i64 1\)", code)
    assert not re.search(r"@\"?(blas|lapack)\.", code)


def externals_of(function: Any) -> tuple[str, ...]:
    return native_graph("test", function, "values").compiled.module.externals
