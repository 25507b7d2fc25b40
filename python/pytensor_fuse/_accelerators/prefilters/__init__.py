"""Prefilters: skip node rewriters that must fail on a node, judged by the node's inputs.

Only the loops of `rewriter_loops` consult the table; it has no effect on PyTensor's own loops.
"""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, Keeps

ACCELERATOR: Final = Accelerator(
    title="rewriters are skipped where the inputs of a node show that they do not apply",
    replaces="nothing: the loops of rewriter_loops consult it",
    skips=(
        "futile tries: a rewriter of switches is not tried on a node without a switch among "
        "its inputs. The inputs that each of 28 rewriters needs were read from its code"
    ),
    ground=(
        Keeps("pytensor.tensor.elemwise:Elemwise", "scalar_op"),
        Does("pytensor.graph.rewriting.basic:EquilibriumGraphRewriter.apply"),
        Does("pytensor.graph.rewriting.basic:WalkingGraphRewriter.apply"),
        Does("pytensor.graph.rewriting.basic:FromFunctionNodeRewriter.transform"),
        Does("pytensor.graph.rewriting.basic:SequentialNodeRewriter.transform"),
    ),
    gain=Gain(1.19, "deep(400)"),
)
