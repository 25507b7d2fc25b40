"""One trace that has calls of several kinds, and passes outside any."""

from __future__ import annotations

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.rewriting.utils import rewrite_graph

from pytensor_fuse import trace as trace_rewrites
from pytensor_fuse.reports import Trace
from support.traced import PYTHON, accumulation, compiled, regression


@pytest.fixture(scope="session")
def trace() -> Trace:
    with trace_rewrites() as made:
        pytensor.function(*regression(), mode=PYTHON, name="</script><b>&\"'")
        compiled(accumulation())
        rewrite_graph(pt.log(pt.exp(pt.vector("x"))))
    return made
