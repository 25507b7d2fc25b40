"""Check an installed wheel: import it, plan a fusion, compile and run what it fused.

Run as a script, away from the sources; it needs nothing but the package and what it depends on.
"""

import importlib.util
import sys

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.elemwise import Elemwise

import pytensor_fuse


def check_plan() -> None:
    """Plan and apply the fusion of a chain by hand."""
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.sin(x) * 2.0 + pt.cos(x)], clone=False)
    plan = pytensor_fuse.plan_fusion(fgraph, target="python")
    assert len(plan.kernels) == 1, plan
    assert len(plan.kernels[0].nodes) == 4, plan
    assert (plan.stats.kernels_before, plan.stats.kernels_after) == (4, 1), plan.stats
    plan.apply()
    assert count_kernels(fgraph) == 1


def check_compile(mode: Mode | str) -> None:
    """Compile with the package on and off; it must have acted and changed no result."""
    x = pt.dmatrix("x")
    out = x
    for _ in range(3):
        out = pt.sin(out.T) + pt.cos(out)
    value = np.linspace(-1.0, 1.0, 9).reshape(3, 3)

    fused = pytensor.function([x], out, mode=mode)
    with pytensor_fuse.enabled(False):
        stock = pytensor.function([x], out, mode=mode)
    assert count_kernels(fused.maker.fgraph) <= count_kernels(stock.maker.fgraph) < 9
    np.testing.assert_allclose(fused(value), stock(value), rtol=1e-12)


def count_kernels(fgraph: FunctionGraph) -> int:
    return sum(isinstance(node.op, Elemwise) for node in fgraph.apply_nodes)


def main() -> None:
    assert pytensor_fuse.status()["fusion"].is_on
    assert "site-packages" in pytensor_fuse.__file__, pytensor_fuse.__file__
    check_plan()
    check_compile(Mode(linker="py", optimizer="fast_run"))
    if importlib.util.find_spec("numba"):
        check_compile("NUMBA")
    print(
        f"pytensor-fuse {pytensor_fuse.__version__} works with PyTensor {pytensor.__version__} "
        f"on Python {sys.version.split()[0]}"
    )


if __name__ == "__main__":
    main()
