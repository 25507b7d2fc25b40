"""Draw the plan of README and of the guide to plans, from the guide's example.

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
    # The picture shows the file that made a node, whose path differs between machines.
    here = str(Path(__file__))
    return plan_fusion(fgraph).to_svg().replace(here, Path(__file__).name)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(plan_svg(), encoding="utf-8")
