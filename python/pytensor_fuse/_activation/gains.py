"""The measured gains of accelerators.

`benchmarks/test_accelerators.py` measures them: the time of a whole compile with all
accelerators but this one, divided by the time with all, alternately, with the Python
linker and without the cache, on PyTensor 3.3.8 and Python 3.13. The figure is from the graph with
the largest gain. The table in `benchmarks/README.md` has all figures. An accelerator without a
figure has had no gain that stood out of the noise of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Gain:
    """The measured gain of an accelerator.

    Attributes
    ----------
    ratio
        How many times longer a compile takes without it, all others being on.
    graph
        The name of the compiled graph in the benchmarks.
    """

    ratio: float
    graph: str

    def __str__(self) -> str:
        return f"{self.ratio:.2f}x on {self.graph}"


GAINS: Final[dict[str, Gain]] = {
    "instance_checks": Gain(1.06, "large(100)"),
    "graph_edits": Gain(1.17, "large(100)"),
    "validation": Gain(1.21, "student-t(40)"),
    "cycles": Gain(1.05, "large(100)"),
    "order": Gain(1.05, "deep(400)"),
    "rewriter_loops": Gain(1.87, "deep(400)"),
    "queries": Gain(1.06, "radon"),
    "base_orders": Gain(1.03, "large(100)"),
    "assumptions": Gain(1.17, "Gaussian process"),
    "blank_assumptions": Gain(1.42, "deep(400)"),
    "no_gemm": Gain(1.38, "deep(400)"),
    "rewriter_names": Gain(1.03, "student-t(40)"),
    "elemwise_nodes": Gain(1.12, "student-t(40)"),
    "clones": Gain(1.07, "deep(400)"),
    "tensor_types": Gain(1.06, "large(100)"),
    "sum_factors": Gain(1.43, "student-t(40)"),
    "declines": Gain(1.19, "deep(400)"),
    "canonizers": Gain(1.04, "radon"),
    "underlying_constants": Gain(1.04, "student-t(40)"),
    "increments": Gain(1.57, "large(100)"),
    "whole_kernels": Gain(1.11, "deep(400)"),
}
