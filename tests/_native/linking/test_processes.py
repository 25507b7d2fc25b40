"""Machine code in new processes: found on disk, without Numba, whatever the directory contains."""

from __future__ import annotations

import pytest

from support.programs.processes import run_python, with_disk_cache

PROGRAM = """
    import sys
    import numpy as np, pytensor, pytensor.tensor as pt
    import pytensor_fuse
    x, y = pt.vectors("xy")
    function = pytensor.function([x, y], [pt.exp(x) * y, (x - y).sum()], mode="NUMBA")
    first, second = function(np.arange(3.0), np.ones(3))
    np.testing.assert_allclose(first, np.exp(np.arange(3.0)))
    assert second == 0.0
    print(function.vm.compiled.origin, "numba" in sys.modules)
"""

# Modules that take longer to import than finding a small model on disk.
LONG_IMPORTS = ("scipy.linalg", "scipy.special", "scipy.sparse", "numpy.f2py", "numpy.testing")


def origin(directory, **variables):
    ran = run_python(PROGRAM, env=with_disk_cache(directory, **variables))
    found, has_numba = ran.stdout.split()
    assert has_numba == "False"
    assert "Warning" not in ran.stderr
    return found


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compiled")
    assert origin(folder) == "compiled"
    return folder


def test_another_process_finds_the_code(directory):
    assert origin(directory) == "disk"


def test_nothing_is_imported_that_takes_long(tmp_path):
    """A graph without matrices, sparse arrays and uncommon functions does not need them."""
    program = f"""
    import sys
    import numpy as np, pytensor, pytensor.tensor as pt
    import pytensor_fuse
    before = set(sys.modules)
    x, y = pt.vectors("xy")
    function = pytensor.function([x, y], [pt.exp(x) * y, (x - y).sum()], mode="NUMBA")
    function(np.arange(3.0), np.ones(3))
    print(function.vm.compiled.origin, *(set(sys.modules) - before) & set({LONG_IMPORTS}))
    """
    for origin_ in ("compiled", "disk"):
        ran = run_python(program, env=with_disk_cache(tmp_path))
        assert ran.stdout.split() == [origin_]


def test_objects_of_another_processor_are_left_alone(directory):
    # Code for a generic processor runs here, too; the test is that it is not mistaken for this
    # processor's.
    other = """
    from pytensor_fuse._native.runtime import llvm
    triple, *_ = llvm.host()
    llvm.host = lambda: (triple, "x86-64", "") if "x86_64" in triple else (triple, "generic", "")
    """
    for wanted in ("compiled", "disk"):
        ran = run_python(other, PROGRAM, env=with_disk_cache(directory))
        assert ran.stdout.split()[0] == wanted
    assert origin(directory) == "disk"


def test_without_the_cache_it_is_compiled(directory):
    assert origin(directory, PYTENSOR_FUSE_CACHE="off") == "compiled"


@pytest.mark.parametrize("spoil", [lambda data: b"", lambda data: data[: len(data) // 2]])
def test_spoilt_files_are_made_anew(directory, spoil):
    files = [path for path in directory.rglob("*") if path.is_file() and "fuse" in str(path)]
    assert files
    for path in files:
        path.write_bytes(spoil(path.read_bytes()))
    assert origin(directory) == "compiled"
    assert origin(directory) == "disk"


def test_changed_bytes_are_noticed(directory):
    for path in directory.rglob("*"):
        if path.is_file() and "fuse" in str(path):
            data = bytearray(path.read_bytes())
            for position in range(len(data) // 3, len(data), 97):
                data[position] ^= 0xFF
            path.write_bytes(bytes(data))
    assert origin(directory) == "compiled"


def test_linear_algebra_in_the_steps_of_a_scan_does_not_load_numba():
    run_python(
        """
        import os, sys
        os.environ["PYTENSOR_FUSE_NATIVE"] = "on"
        import numpy as np, pytensor, pytensor.tensor as pt, pytensor_fuse

        a = pt.matrix("a", shape=(3, 3))

        def step(x, a):
            return pt.linalg.solve(a @ a.T + x, a) + pt.linalg.inv(a @ a.T) @ x

        x = pytensor.scan(
            step, outputs_info=[pt.eye(3)], non_sequences=[a], n_steps=3, return_updates=False
        )
        f = pytensor.function([a], [x[-1], pytensor.grad(x[-1].sum(), a)], mode="NUMBA")
        assert np.isfinite(f(np.eye(3) + 0.1)[1]).all()
        assert type(f.vm).__name__ == "NativeThunk"
        assert "numba" not in sys.modules
        """
    )
