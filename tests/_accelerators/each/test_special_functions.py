"""Constants are folded by SciPy's own ufuncs, whether or not its package has been imported."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytensor
import pytensor.scalar.math
import pytensor.tensor as pt
import pytest

from pytensor_fuse._accelerators.special_functions import drop_in as special_functions
from support.programs.processes import run_python
from support.switching import switched

START = """
    import sys
    import numpy as np
    import pytensor, pytensor.tensor as pt, pytensor_fuse
    assert pytensor_fuse.status()["accelerators"].parts["special_functions"].is_on
    assert "scipy.special" not in sys.modules

    def folded(*values):
        return pytensor.function([], [pt.gammaln(pt.constant(v)) for v in values], mode=MODE)()

    MODE = pytensor.compile.mode.Mode("py", "fast_run")
"""


def test_all_that_elemwise_asks_for_are_the_same_objects():
    source = Path(pytensor.scalar.math.__file__).read_text()
    names = re.findall(r'nfunc_spec = \("scipy\.special\.(\w+)"', source)
    package = import_module("scipy.special")
    extension = special_functions._extension()
    found = {name for name in names if hasattr(extension, name)}
    assert {"gammaln", "psi", "erf", "erfc"} <= found
    for name in found:
        assert getattr(extension, name) is getattr(package, name), name


@pytest.mark.parametrize(
    "program",
    [
        # Nothing is imported, and what is imported later has the same ufuncs.
        """
        values = [np.float64(0.5), np.arange(1.0, 20.0), np.float32(3.5)]
        found = folded(*values)
        assert "scipy.special" not in sys.modules
        import scipy.special
        from scipy.special import _special_ufuncs
        assert scipy.special.gammaln is _special_ufuncs.gammaln
        for one, value in zip(found, values):
            assert np.array_equal(one, scipy.special.gammaln(value))
        """,
        # One that is not in the extension.
        """
        (found,) = pytensor.function([], [pt.erfinv(pt.constant(np.float64(0.5)))], mode=MODE)()
        assert "scipy.special" in sys.modules
        import scipy.special
        assert found == scipy.special.erfinv(0.5)
        """,
        # Switched off.
        """
        pytensor_fuse.disable("accelerators:special_functions")
        (found,) = folded(np.float64(0.5))
        assert "scipy.special" in sys.modules
        assert found == sys.modules["scipy.special"].gammaln(0.5)
        """,
        # A SciPy without that module, or with one that does not load.
        """
        from pytensor_fuse._accelerators.special_functions import drop_in as special_functions
        special_functions._path = lambda: __import__("pathlib").Path(special_functions.__file__)
        (found,) = folded(np.float64(0.5))
        assert "scipy.special" in sys.modules
        assert found == sys.modules["scipy.special"].gammaln(0.5)
        """,
        # An op that computed so is pickled as before.
        """
        import pickle
        folded(np.float64(0.5))
        assert pickle.loads(pickle.dumps(pt.gammaln))(2.0).eval(mode=MODE) == 0
        """,
    ],
    ids=["folded", "not there", "off", "another SciPy", "pickled"],
)
def test_imports(program):
    run_python(START, program)


def test_rewritten_graphs_are_the_same():
    y = pt.vector("y")
    out = y * pt.gammaln(pt.constant(np.arange(1.0, 9.0))) + pt.erf(pt.constant(0.25))
    functions = []
    for is_on in (True, False):
        parts = ("special_functions",) if is_on else ()
        with switched(cache=False, accelerators=parts):
            functions.append(pytensor.function([y], out, mode="NUMBA"))
    ours, stock = (f.maker.fgraph for f in functions)
    assert pytensor.graph.basic.equal_computations(
        ours.outputs, stock.outputs, ours.inputs, stock.inputs
    )
