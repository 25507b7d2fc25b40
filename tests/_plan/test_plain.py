"""Plans in plain types."""

from __future__ import annotations

import json
import re

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph

from pytensor_fuse import plan_fusion
from pytensor_fuse.reports import FusionPlan
from support.programs.processes import run_python


def graph() -> FunctionGraph:
    x, unnamed = pt.vector("x"), pt.vector()
    total = pt.exp(x) * np.array([2.5]) + unnamed
    total.name = "the total"
    return FunctionGraph(
        [x, unnamed], [pt.cumsum(total), pt.sin(total), pt.log(total)], clone=False
    )


def as_json(plan: FusionPlan) -> dict:
    return json.loads(json.dumps(plan.to_dict(), allow_nan=False))


def test_a_plan_as_json() -> None:
    fgraph = graph()
    plan = plan_fusion(fgraph)
    found = as_json(plan)
    assert found == plan.to_dict()
    assert found["format"] == 1
    assert set(found["versions"]) == {"pytensor", "pytensor_fuse"}
    assert (found["target"], found["max_operands"]) == ("strict", plan.max_operands)
    assert found["strategy"] == plan.strategy
    assert found["stats"] == vars(plan.stats)
    nodes = fgraph.toposort()
    assert [node["op"] for node in found["nodes"]] == [str(node.op) for node in plan.nodes]
    assert sorted(map(str, nodes)) == sorted(map(str, plan.nodes))
    for i, (kernel, known) in enumerate(zip(found["kernels"], plan.kernels, strict=True)):
        assert [plan.nodes[n] for n in kernel["nodes"]] == list(known.nodes)
        assert kernel["ops"] == [str(node.op) for node in known.nodes]
        assert all(found["nodes"][n]["kernel"] == i for n in kernel["nodes"])
    assert [plan.nodes[n] for n in found["unfused"]] == list(plan.unfused)
    assert all(found["nodes"][n]["kernel"] is None for n in found["unfused"])
    [kernel] = found["kernels"]
    assert sorted(kernel["inputs"]) == ["2.5", "input 1", "x"]
    assert "the total" in kernel["outputs"]
    # What has no name is called by its node.
    rest = [name for name in kernel["outputs"] if name != "the total"]
    assert rest == [f"{n}: {plan.nodes[n].op}" for n in kernel["nodes"][-2:]]


def test_a_plan_of_nothing() -> None:
    found = as_json(plan_fusion(FunctionGraph([], [], clone=False)))
    assert found["nodes"] == found["kernels"] == found["unfused"] == []
    assert found["stats"]["proven"] is True


def test_it_says_what_the_plan_was_after_it_is_applied() -> None:
    plan = plan_fusion(graph())
    before = plan.to_dict()
    plan.apply()
    assert plan.to_dict() == before


CODE = """
import json

import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph

from pytensor_fuse import plan_fusion

x = out = pt.matrix("x")
for _ in range(5):
    out = pt.sin(out.T) + pt.cos(out)
text = json.dumps(plan_fusion(FunctionGraph([x], [out], clone=False)).to_dict())
"""


def test_it_is_the_same_in_every_process() -> None:
    here: dict[str, str] = {}
    exec(CODE, here)
    assert re.search("0x[0-9a-f]{6}", here["text"]) is None
    assert run_python(CODE, "print(text)").stdout.strip() == here["text"]
