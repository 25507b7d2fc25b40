"""Inner functions of optimizers as machine code, where all of their nodes have rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.compile.mode import Mode
from pytensor.graph.rewriting.basic import SequentialGraphRewriter

from pytensor_fuse._errors import NativeLinkError
from pytensor_fuse._native.linking.linker import NativeLinker
from pytensor_fuse._native.setting import Use, use
from pytensor_fuse._pytensor.linking.optimizers import inner_functions

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch


def _mode() -> Mode | None:
    # Inner graphs have been rewritten together with the outer ones.
    return None if use() is Use.OFF else Mode(NativeLinker(), SequentialGraphRewriter())


def native_inner_functions() -> Patch:
    """Return the patch of the optimizers' inner functions."""
    patch: Patch = inner_functions(_mode, NativeLinkError)
    return patch
