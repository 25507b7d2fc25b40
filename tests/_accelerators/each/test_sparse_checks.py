"""Nothing sparse is imported for graphs and data without it, and what is sparse is seen to be."""

from __future__ import annotations

import numpy as np
import pytensor
import pytest
from pytensor.tensor.basic import get_underlying_scalar_constant_value
from pytensor.tensor.exceptions import NotScalarConstantError

from pytensor_fuse._pytensor.ops import sparse_data, underlying_constants
from support.programs.processes import run_python
from support.switching import switched

START = """
    import os
    import sys
    os.environ["PYTENSOR_FUSE_NATIVE"] = "on"
    import numpy as np
    import pytensor, pytensor.tensor as pt, pytensor_fuse
    from pytensor.utils import lazy_scipy_module
    assert pytensor_fuse.status()["accelerators"].parts["sparse_checks"].is_on

    def is_loaded():
        return "scipy.sparse" in sys.modules or "pytensor.sparse" in sys.modules

    assert not is_loaded()
    sparse = lazy_scipy_module("sparse")
"""


@pytest.mark.parametrize(
    "program",
    [
        # Nothing can be sparse, and later something is.
        """
        issparse = sparse.issparse
        assert not issparse(np.eye(3)) and not sparse.issparse(None) and not is_loaded()
        import scipy.sparse
        for one in (np.eye(3), scipy.sparse.csr_matrix(np.eye(3)), scipy.sparse.csc_array((2, 2))):
            assert issparse(one) is sparse.issparse(one) is scipy.sparse.issparse(one)
        assert sparse.issparse is scipy.sparse.issparse
        """,
        # All else is imported.
        """
        assert sparse.csr_matrix is sys.modules["scipy.sparse"].csr_matrix
        """,
        # Switched off.
        """
        pytensor_fuse.disable("accelerators:sparse_checks")
        assert not sparse.issparse(np.eye(3))
        assert "scipy.sparse" in sys.modules
        """,
        # A gradient that PyTensor looks for constants in, compiled and called.
        """
        x = pt.vector("x")
        y = pt.switch(pt.eq(x[0], 1), x.sum(), pt.ones((3,))[1]) + pt.specify_shape(x, (3,))[2]
        f = pytensor.function([x], [y, pt.grad(y, x)], mode="NUMBA")
        f(np.ones(3))
        assert not is_loaded()
        assert "numba" not in sys.modules
        """,
        # Only Numba's linker asks whether a graph can do without Numba, which loads LLVM.
        """
        x = pt.vector("x")
        pytensor.function([x], pt.exp(x).sum(), mode=pytensor.compile.mode.Mode("py", "fast_run"))
        assert "llvmlite" not in sys.modules and "pytensor_fuse._native.lowering" not in sys.modules
        assert not is_loaded()
        """,
        # Sparse data give sparse variables.
        """
        import scipy.sparse
        import pytensor.sparse as ps
        data = scipy.sparse.csr_matrix(np.diag([2.0, 3.0]))
        f = pytensor.function([], ps.dense_from_sparse(ps.as_sparse_variable(data) * 2), mode="CVM")
        assert np.array_equal(f(), np.diag([4.0, 6.0]))
        """,
    ],
    ids=["checks", "other attributes", "off", "gradient", "other linkers", "sparse"],
)
def test_imports(program):
    run_python(START, program)


def test_search_sees_a_sparse_op_as_before() -> None:
    import pytensor.sparse as ps

    data = pytensor.tensor.constant([2.5])
    matrix = ps.CSR(data, np.array([0]), np.array([0, 1]), np.array([1, 1]))
    for parts in (["underlying_constants"], []):
        with switched(accelerators=parts):
            assert underlying_constants.search_imports_sparse() is not bool(parts)
            with pytest.raises(NotScalarConstantError):
                get_underlying_scalar_constant_value(matrix)
    assert sparse_data.CSM is ps.CSM
    with pytest.raises(AttributeError, match="CSR"):
        _ = sparse_data.CSR


def test_pytensor_that_imports_scipy_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_data, "_Lazy", None)
    patch = sparse_data.checks_without_import()
    patch.prepare()
    patch.apply()
    assert patch.holds()
    patch.undo()


def test_observations_do_not_import_it():
    pytest.importorskip("pymc")
    run_python("""
        import os
        import sys
        os.environ["PYTENSOR_FUSE_NATIVE"] = "on"
        import numpy as np
        import pymc as pm
        import pytensor, pytensor_fuse

        with pm.Model() as model:
            x = pm.Normal("x", shape=3)
            pm.Normal("y", x[np.array([0, 1, 2, 2])], 1.0, observed=np.zeros(4))
        point = model.initial_point()
        out = model.logp()
        f = pytensor.function(
            model.value_vars, [out, *pytensor.grad(out, model.value_vars)], mode="NUMBA"
        )
        f(**point)
        assert "scipy.sparse" not in sys.modules and "pytensor.sparse" not in sys.modules
    """)
