"""What accelerators have been measured to gain.

The figures are those of `benchmarks/test_accelerators.py`: the time of a whole compile with all
accelerators but this one, divided by that with all, the two next to each other, with the Python
linker and without the cache, on PyTensor 3.3.7 and Python 3.13. Of the graphs there, this is the
one on which it gains most. The table in `benchmarks/README.md` has all. Where none has yet
stood out of the noise of the machine, there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Gain:
    """What an accelerator has been measured to gain.

    Attributes
    ----------
    ratio
        How many times longer a compile takes without it, all others being on.
    graph
        What was compiled, as the benchmarks call it.
    """

    ratio: float
    graph: str

    def __str__(self) -> str:
        return f"{self.ratio:.2f}x on {self.graph}"


GAINS: Final[dict[str, Gain]] = {
    "instance_checks": Gain(1.1, "radon"),
    "order": Gain(1.08, "deep(400)"),
    "rewriter_loops": Gain(1.29, "deep(400)"),
    "assumptions": Gain(1.21, "deep(400)"),
    "no_gemm": Gain(1.17, "deep(400)"),
    "elemwise_nodes": Gain(1.09, "radon"),
    "clones": Gain(1.09, "deep(400)"),
    "increments": Gain(1.64, "large(100)"),
}
