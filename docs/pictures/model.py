"""Draw the plan and the loops of the model that "How it works" follows: runs the page's examples.

    python docs/pictures/model.py

writes model_plan.svg and model_loops.svg beside it. A test compares the plan; the vectors in the
picture of the loops are as wide as those of the machine.
"""

import os
import re
from pathlib import Path

HERE = Path(__file__).parent.resolve()


def draw() -> None:
    page = (HERE.parent / "how_it_works.md").read_text(encoding="utf-8")
    os.chdir(HERE)
    examples = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    exec(compile(examples, "how_it_works.md", "exec"), {})


if __name__ == "__main__":
    draw()
