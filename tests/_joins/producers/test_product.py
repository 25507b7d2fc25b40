"""Streams that are products with vectors."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.blas import Gemv

from pytensor_fuse._joins.ops.join import WriteJoin
from support.joins.outcomes import WRITTEN, check, nodes, rand, reasons

pytestmark = pytest.mark.usefixtures("joins_on")

x, y, z = pt.vectors("xyz")
A, B = pt.matrices("AB")


@pytest.mark.parametrize(
    "mode", ["CVM", Mode(linker="cvm", optimizer="fast_run").excluding("fusion")]
)
def test_products_with_vectors_are_written_by_blas_ops(mode):
    out = pt.concatenate([A @ x, y * 2 + 1, A @ (x + 1)])
    f = check(
        [A, x, y], out, mode, (rand(40, 3), rand(3), rand(4)), (rand(3, 2).T, rand(3), rand(0))
    )
    assert reasons(f) == (WRITTEN,) * 3
    assert not nodes(f, AllocEmpty)
    assert all(node.op.inplace for node in nodes(f, Gemv))
    infinite = np.full((3, 3), np.inf)
    np.testing.assert_array_equal(f(infinite, np.ones(3), []), np.full(6, np.inf))
    added = pt.concatenate([y + A @ x, x * 2 + 1])
    f = check([A, x, y], added, mode, (rand(4, 3), rand(3), rand(4)))
    assert reasons(f)[0] is not WRITTEN or not nodes(f, Gemv)


def test_debugmode_agrees_about_products():
    f = pytensor.function([A, x, y], pt.concatenate([A @ x, y * 2 + 1]), mode="DebugMode")
    assert nodes(f, WriteJoin)
    np.testing.assert_allclose(f(np.ones((2, 3)), np.ones(3), [1.0]), [3, 3, 3])
