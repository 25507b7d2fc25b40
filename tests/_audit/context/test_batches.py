"""Graphs that a node runs for each element of a batch."""

import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode

from pytensor_fuse import audit

ROWS = pt.dmatrix("rows", shape=(3, 4))


def test_graph_gets_an_element():
    diagonals = pt.vectorize(pt.diag, signature="(n)->(n,n)")(ROWS)
    function = pytensor.function([ROWS], diagonals + 1, mode=Mode("py", "fast_run"))
    assert audit(function).matrices.work == ()
