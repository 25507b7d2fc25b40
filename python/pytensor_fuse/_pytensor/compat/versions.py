"""Differences between the supported versions of PyTensor, and nothing else."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytensor
from pytensor.compile import mode as mode_module
from pytensor.graph import features
from pytensor.graph.basic import FrozenApply
from pytensor.graph.fg import FrozenFunctionGraph, Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.compile.mode import Mode
    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

# Features of PyTensor that refuse nodes because of the inputs they overwrite; 3.3 has one more.
INPLACE_VALIDATORS: tuple[type, ...] = tuple(
    getattr(features, name)
    for name in ("NoOutputFromInplace", "NoOutputInplaceOnInput")
    if hasattr(features, name)
)

# Rewriters that only delegate to another one for a given mode; 3.3 wraps the optimizer of a mode.
WRAPPERS: tuple[type, ...] = tuple(
    getattr(mode_module, name)
    for name in ("_ActiveModeGraphRewriter",)
    if hasattr(mode_module, name)
)


# The message of a product of matrices with different inner lengths, which comes from Numba in 3.0
# and from PyTensor itself in 3.3. The file is searched for it, as importing the module would import
# Numba.
PRODUCT_MISMATCH: str = (
    "gemm: operands have mismatched contraction dimensions"
    if Path(pytensor.__path__[0], "link/numba/dispatch/linalg/_BLAS.py").exists()
    else "incompatible array sizes for np.dot(a, b) (matrix * matrix)"
)


@cache
def scales_cauchy() -> bool:
    """Whether Numba mode passes Cauchy's parameters in order; 3.0 swaps location and scale.

    The file is read, as importing the module would import Numba.
    """
    source = Path(pytensor.__path__[0], "link/numba/dispatch/random.py").read_text("utf-8")
    return "loc + scale * rng.standard_cauchy()" in source


def compile_mode(fgraph: FunctionGraph) -> Mode | None:
    """Return the mode that ``fgraph`` is being compiled for, if PyTensor provides it (3.3 does)."""
    return getattr(fgraph, "_compile_mode", None)


def frozen_graph(
    inputs: tuple[Variable[Any, Any], ...],
    nodes: tuple[FrozenApply, ...],
    outputs: Sequence[Variable[Any, Any]],
) -> FrozenFunctionGraph:
    """Assemble a frozen graph from its interned parts, ``nodes`` in topological order.

    PyTensor 3.3 takes the parts as they are; 3.0 collects the nodes again.
    """
    make: Any = FrozenFunctionGraph
    if not hasattr(FrozenFunctionGraph, "from_io"):
        return cast("FrozenFunctionGraph", make(inputs, outputs))
    output_nodes = tuple(FrozenApply(Output(i), (out,), ()) for i, out in enumerate(outputs))
    return cast("FrozenFunctionGraph", make(inputs, nodes, output_nodes))
