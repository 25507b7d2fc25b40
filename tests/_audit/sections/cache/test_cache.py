"""What an audit says about Numba's cache, judged by what Numba stores and loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from textwrap import dedent

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.ops import wrap_py
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.sparse import as_sparse_variable, dot
from scipy import sparse

from pytensor_fuse._audit.audit import audit
from pytensor_fuse._pytensor.graphs.inner_graphs import GRAPH_OPS

pytest.importorskip("numba")

pytestmark = [
    pytest.mark.usefixtures("numba_alone"),
    pytest.mark.filterwarnings(
        "ignore:Numba will use object mode", "ignore:.*Cannot cache compiled function"
    ),
]

N_LONGEST = 10**6 // 8


class Sorted(Op):
    """An op that Numba knows nothing about."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.sort(inputs[0])


def compiled(inputs, outputs):
    return pytensor.function(inputs, outputs, mode="NUMBA")


def numba_can_store(function):
    """The truth, of a function that has been called."""
    jitted = function.vm.jit_fn
    if type(jitted._cache).__name__ == "NullCache":
        return False
    [result] = jitted.overloads.values()
    # Numba's own question before it writes.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return jitted._cache._impl.check_cachable(result)


def check(inputs, outputs, *values):
    """Audit before and after the first call, compare with what Numba does, return the first."""
    function = compiled(inputs, outputs)
    before = audit(function).caching
    assert before.numba
    assert before.stored is None
    function(*values)
    after = audit(function).caching
    assert before.cacheable == after.cacheable == after.stored == numba_can_store(function)
    assert bool(before.culprits) == (not before.cacheable)
    assert json.loads(json.dumps(after.to_dict())) == after.to_dict()
    return before


X = pt.vector("x")


def test_a_plain_function_is_stored():
    assert check([X], [pt.exp(X) + 1], np.ones(3)).cacheable


def test_linear_algebra_is_stored():
    a = pt.matrix("a")
    outputs = [pt.linalg.cholesky(a), pt.linalg.inv(a).sum(), pt.linalg.svd(a)[1]]
    assert check([a], outputs, np.eye(3)).cacheable


@pytest.mark.parametrize("n", [N_LONGEST, N_LONGEST + 1])
def test_a_constant_of_up_to_a_megabyte_is_stored(n):
    found = check([X], [pt.exp(X) + pt.constant(np.arange(float(n)), name="<data>")], np.ones(n))
    assert found.cacheable == (n == N_LONGEST)
    if not found.cacheable:
        [culprit] = found.culprits
        assert culprit.constant.name == "<data>"
        assert culprit.constant in culprit.node.inputs
        assert "constant <data> of 1000008 bytes" in str(culprit)
        assert "&lt;data&gt;" in found.html()
        assert "<data>" not in found.html()


def test_a_constant_that_is_not_contiguous():
    data = np.arange(40.0).reshape(4, 10)[:, ::2]
    function = compiled([X], [pt.exp(X) + pt.constant(data)])
    found = audit(function).caching
    function(np.ones(5))
    assert found.cacheable == numba_can_store(function)
    assert all("not contiguous" in culprit.why for culprit in found.culprits)


def test_a_long_constant_that_no_node_reads():
    found = check([X], [pt.exp(X), pt.constant(np.arange(N_LONGEST + 1.0))], np.ones(2))
    assert not found.cacheable


def test_a_long_sparse_constant():
    matrix = sparse.random(400, 400, density=0.9, format="csr", random_state=0)
    a = pt.matrix("a")
    found = check([a], [dot(as_sparse_variable(matrix), a)], np.ones((400, 2)))
    assert not found.cacheable


def test_a_long_shared_variable_is_no_constant():
    data = pytensor.shared(np.ones(N_LONGEST + 1))
    assert check([X], [pt.exp(X) + data], np.ones(N_LONGEST + 1)).cacheable


def test_an_op_that_numba_does_not_know():
    found = check([X], [Sorted()(X) + 1], np.ones(3))
    [culprit] = found.culprits
    assert isinstance(culprit.node.op, Sorted)
    assert "calls back to Python" in culprit.why


def test_an_op_with_an_implementation_but_no_key():
    from pytensor.link.numba.dispatch import numba_funcify
    from pytensor.link.numba.dispatch.basic import numba_njit

    class Twice(Sorted):
        pass

    @numba_funcify.register(Twice)
    def _(op, node=None, **kwargs):
        @numba_njit
        def twice(x):
            return 2 * x

        return twice

    [culprit] = check([X], [Twice()(X) + 1], np.ones(3)).culprits
    assert culprit.why == "its implementation for Numba gives no key"


def test_a_python_function():
    double = wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])(lambda x: 2 * x)
    [culprit] = check([X], [double(X)], np.ones(3)).culprits
    assert "Python" in culprit.why


def in_scan(step):
    out = pytensor.scan(
        lambda state: step(state), outputs_info=[X], n_steps=3, return_updates=False
    )
    return out[-1]


@pytest.mark.parametrize(
    ("step", "culprit"),
    [
        (lambda state: state * 2, None),
        (lambda state: Sorted()(state) * 2, "Sorted"),
        (lambda state: state * pt.constant(np.arange(N_LONGEST + 1.0)), "bytes"),
    ],
)
@pytest.mark.parametrize("wrap", ["scan", "graph"])
def test_inner_graphs(step, culprit, wrap):
    values = np.ones(N_LONGEST + 1 if culprit == "bytes" else 3)
    if wrap == "scan":
        out = in_scan(step)
    else:
        inner = pt.vector()
        out = pytensor.compile.builders.OpFromGraph([inner], [step(inner)])(X)
    found = check([X], [out], values)
    assert found.cacheable == (culprit is None)
    if culprit is not None:
        [one] = found.culprits
        assert culprit in str(one)
        assert len(one.path) == 1


def test_a_culprit_under_blockwise():
    a = pt.tensor3("a")
    blocked = pt.vectorize(lambda row: Sorted()(row), signature="(n)->(n)")(a)
    found = check([a], [blocked * 2], np.ones((2, 3, 4)))
    assert not found.cacheable
    assert len(found.culprits) == 1


def test_each_kind_of_graph_has_an_implementation_of_its_own():
    from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key as dispatcher

    implementations = {dispatcher.dispatch(kind) for kind in GRAPH_OPS}
    assert len(implementations) == len(GRAPH_OPS)
    assert dispatcher.dispatch(object) not in implementations


def test_the_cache_is_off():
    with pytensor.config.change_flags(numba__cache=False):
        function = compiled([X], [pt.exp(X)])
        found = audit(function).caching
        assert not found.cacheable
        assert "numba__cache is off" in found.lines()[0]
        function(np.ones(2))
        assert not numba_can_store(function)
    # It had no key when it was compiled.
    assert not audit(function).caching.cacheable


def test_other_linkers():
    function = pytensor.function([X], pt.exp(X), mode="FAST_COMPILE")
    assert audit(function).caching.cacheable is None
    assert audit(FunctionGraph([X], [pt.exp(X)])).caching.cacheable is None


PROGRAM = """
    import json, sys
    import numpy as np, pytensor, pytensor.tensor as pt
    from pytensor_fuse._audit.audit import audit

    x = pt.vector("x")
    n = int(sys.argv[1])
    function = pytensor.function([x], pt.exp(x) + np.arange(float(n)), mode="NUMBA")
    claim = audit(function).caching.cacheable
    function(np.ones(n))
    hits = sum(function.vm.jit_fn.stats.cache_hits.values())
    print(json.dumps({"claim": claim, "hits": hits}))
"""


@pytest.mark.parametrize("n", [10, N_LONGEST + 1])
def test_another_process_loads_what_is_claimed_to_be_stored(n, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(dedent(PROGRAM))
    environment = {**os.environ, "PYTENSOR_FLAGS": f"base_compiledir={tmp_path / 'compiled'}"}
    runs = [
        json.loads(
            subprocess.run(
                [sys.executable, "-W", "ignore", program, str(n)],
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
                check=True,
            ).stdout
        )
        for _ in range(2)
    ]
    claim = n == 10
    assert [run["claim"] for run in runs] == [claim, claim]
    assert [run["hits"] for run in runs] == [0, int(claim)]
