"""Trackers of rewriters: the method resolution order of a class of ops is computed once.

PyTensor makes the passes anew for each compilation, and each pass asks for each class of ops.
"""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, Has

ACCELERATOR: Final = Accelerator(
    title="the base classes of an op class are ordered once",
    replaces="_compose_mro where trackers of rewriters call it",
    skips="the method resolution order of op classes, computed in each compile",
    ground=(
        Does("pytensor.graph.rewriting.basic:OpToRewriterTracker._get_trackers"),
        Has("pytensor.graph.rewriting.basic", "_compose_mro"),
    ),
    gain=Gain(1.03, "large(100)"),
)
