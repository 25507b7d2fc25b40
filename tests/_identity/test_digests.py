"""Digests: the same in every process, or an error that says why there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph

import pytensor_fuse
from pytensor_fuse import freeze
from pytensor_fuse.exceptions import DigestError
from support.frozen import Itself
from support.programs.processes import run_python

# No digest --------------------------------------------------------------------------------------


def test_an_op_that_is_only_itself_leaves_no_digest():
    x = pt.vector("x")
    op = Itself()
    frozen = freeze([x], [op(pt.exp(x))])
    assert frozen == freeze([x], [op(pt.exp(x))]) != freeze([x], [Itself()(pt.exp(x))])
    with pytest.raises(DigestError, match=r"Itself.*node 1.*does not define equality"):
        _ = frozen.digest


def test_a_lambda_deep_in_an_op_is_named():
    x, y = pt.vectors("xy")
    inner = OpFromGraph([y], [pt.exp(y)], pullback=lambda inputs, outputs, gradients: gradients)
    outer = OpFromGraph([y], [inner(y) + 1])
    with pytest.raises(DigestError, match=r"(?s)node 0.*fgraph.*pullback_overrides.*lambda"):
        _ = freeze([x], [outer(x)]).digest


# Other processes --------------------------------------------------------------------------------


DIGESTS = """
    import pickle, sys
    import numpy as np
    import pytensor
    import pytensor.scalar as ps
    import pytensor.tensor as pt
    from pytensor.compile.builders import OpFromGraph
    from pytensor.scalar.basic import Composite
    from pytensor.tensor.elemwise import Elemwise
    from pytensor_fuse import freeze

    x, y, m = pt.vector("x"), pt.vector("y"), pt.matrix("m")
    i = pt.vector("i", dtype="int64")
    a, b = ps.float64("a"), ps.float64("b")
    kernel = Elemwise(Composite([a, b], [a * b + ps.exp(a), a - b]))
    inner = OpFromGraph([x, y], [pt.exp(x) / y, x * -0.0])
    cholesky = pt.linalg.cholesky(pt.dot(m, m.T))
    graphs = {
        "elemwise": freeze([x, y], [pt.exp(x) * y + 0.5, pt.switch(x > 0, x, y)]),
        "constants": freeze([x], [x * pt.constant(np.array([1.0, -0.0, np.nan])), x / 3]),
        "shapes": freeze([m, i], [m.T[i], m.sum(axis=(0, 1)), m.sum(axis=0), m[:, 1:3]]),
        "composite": freeze([x, y], kernel(x, y)),
        "inner": freeze([x, y], inner(x, y)),
        "linear algebra": freeze([m], [pt.log(pt.diag(cholesky)).sum()]),
        "gradient": freeze([x], [pytensor.grad((pt.exp(x) ** 2 / 3).sum(), x)]),
    }
"""


PRINT_DIGESTS = """
    for name, graph in graphs.items():
        print(name, graph.digest)
"""


def test_digests_are_the_same_with_every_hash_seed(monkeypatch):
    digests = set()
    for seed in ("0", "1", "4321"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        digests.add(run_python(DIGESTS, PRINT_DIGESTS).stdout)
    assert len(digests) == 1
    assert len(set(digests.pop().split("\n"))) == 8


def other_pythons():
    root = Path(__file__).parents[2]
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return sorted(
        path for path in root.glob(".venv-*/bin/python") if path.parts[-3] != f".venv-{here}"
    )


def test_digests_are_the_same_in_another_version_of_python():
    pythons = other_pythons()
    if not pythons:
        pytest.skip("there is no .venv-* of another version of Python; run `make test PYTHON=3.11`")
    ours = run_python(DIGESTS, PRINT_DIGESTS).stdout
    package = Path(pytensor_fuse.__file__).parents[1]
    for python in pythons:
        code = "\n".join(line[4:] for line in (DIGESTS + PRINT_DIGESTS).split("\n"))
        done = subprocess.run(
            [python, "-c", code],
            env={**os.environ, "PYTHONPATH": str(package), "PYTENSOR_FUSE": ""},
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == ours, python


def test_a_pickle_is_equal_to_what_another_process_froze(tmp_path):
    path = tmp_path / "graphs"
    write = f"""
        with open({str(path)!r}, "wb") as file:
            pickle.dump(graphs, file)
    """
    read = f"""
        with open({str(path)!r}, "rb") as file:
            theirs = pickle.load(file)
        assert list(theirs) == list(graphs)
        for name in graphs:
            assert theirs[name] == graphs[name], name
            assert theirs[name].digest == graphs[name].digest
    """
    run_python(DIGESTS, write)
    run_python(DIGESTS, read)
