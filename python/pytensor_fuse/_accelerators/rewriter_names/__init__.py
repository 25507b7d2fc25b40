"""Names of node rewriters: the default name is formatted only for rewriters without a name.

Rewriters made from functions format the function and its tracks each time their name is read, as
the default of a ``getattr``; the name is noted for each node that is added or removed.
"""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does

ACCELERATOR: Final = Accelerator(
    title="the description of a rewriter is made only if it has no name",
    replaces="__str__ of rewriters made from functions",
    skips="a description of the rewriter that is thrown away",
    ground=(
        Does("pytensor.graph.rewriting.basic:FromFunctionNodeRewriter.__str__"),
        Does("pytensor.graph.rewriting.basic:FromFunctionGraphRewriter.__str__"),
    ),
    gain=Gain(1.03, "student-t(40)"),
)
