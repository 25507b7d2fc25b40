"""What differs between the supported versions of PyTensor, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytensor.compile.mode import Mode
    from pytensor.graph.fg import FunctionGraph


def compile_mode(fgraph: FunctionGraph) -> Mode | None:
    """Return the mode that ``fgraph`` is being compiled for, if PyTensor says so (3.3 does)."""
    return getattr(fgraph, "_compile_mode", None)
