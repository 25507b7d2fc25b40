"""What nobody reads goes out of kernels as it does in PyTensor; all else stays."""

from __future__ import annotations

from typing import Any

import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.rewriting.elemwise import local_useless_composite_outputs

from pytensor_fuse._accelerators.whole_kernels import drop_in as whole_kernels
from support.switching import switched

steps = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)), max_size=6)
OPS = [ps.add, ps.mul, ps.sub]


def kernel(program: Any, wanted: Any, read: Any) -> tuple[FunctionGraph, Any]:
    """A graph of one kernel of three inputs, some of whose outputs are read."""
    scalars: list[Any] = [ps.float64(name) for name in "abc"]
    made = list(scalars)
    for op, a, b in program:
        made.append(OPS[op](made[a % len(made)], made[b % len(made)]))
    outputs = [made[k % len(made)] for k in wanted]
    outputs = [ps.identity(out) if out in scalars else out for out in outputs]
    op = Elemwise(Composite(scalars, outputs))
    inputs = pt.vectors("x", "y", "z")
    results = op(*inputs, return_list=True)
    kept = [out for out, is_read in zip(results, read, strict=False) if is_read] or results[:1]
    return FunctionGraph(inputs, kept, clone=False), results[0].owner


@given(
    program=steps,
    wanted=st.lists(st.integers(0, 9), min_size=1, max_size=3),
    read=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_the_same_is_taken_out(program: Any, wanted: Any, read: Any) -> None:
    fgraph, node = kernel(program, wanted, read)
    rewrite: Any = local_useless_composite_outputs
    with switched(accelerators=False):
        expected = rewrite.fn(fgraph, node)
    with switched(accelerators=["whole_kernels"]):
        found = rewrite.fn(fgraph, node)
    if expected is None:
        assert found is None
    else:
        assert found.keys() == expected.keys()
        for old, new in expected.items():
            assert found[old].owner.op == new.owner.op
            assert found[old].owner.inputs == new.owner.inputs


def test_whole_kernels_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(whole_kernels, "_stock", fail)
    fgraph, node = kernel([(0, 0, 1), (1, 3, 2)], [4], [True])
    rewrite: Any = local_useless_composite_outputs
    with switched(accelerators=["whole_kernels"]):
        assert rewrite.fn(fgraph, node) is None
        # One input is not read.
        fgraph, node = kernel([(0, 0, 1)], [3], [True])
        with pytest.raises(AssertionError):
            rewrite.fn(fgraph, node)
