"""Draw the plan of README and of the guide to plans, whose example this is.

    python docs/pictures/plan.py

writes plan.svg beside it; a test compares the two.
"""

from pathlib import Path

import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph

from pytensor_fuse import plan_fusion


def plan_svg() -> str:
    x = pt.vector("x")
    weights = pt.exp(x)
    fgraph = FunctionGraph([x], [pt.log(weights / weights.sum()), pt.sin(x)])
    # Where a node was made is shown by its path, which is another one on each machine.
    here = str(Path(__file__))
    return plan_fusion(fgraph).to_svg().replace(here, Path(__file__).name)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(plan_svg(), encoding="utf-8")
