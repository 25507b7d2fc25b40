"""Reports of `explain` and `audit` on machine code."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op

import pytensor_fuse
from pytensor_fuse import audit, explain
from pytensor_fuse._native.emission.functions import LoopNote
from pytensor_fuse._native.explain.assembly import register_bits
from pytensor_fuse._native.lowering.graph import lower_graph
from pytensor_fuse._native.program.parse import parse_program
from pytensor_fuse._native.program.text import print_program
from pytensor_fuse._native.runtime.llvm import host_machine
from pytensor_fuse.reports import NativeReport, NativeState


class NoRule(Op):
    """An op that no backend knows."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply[Any]:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = inputs[0] + 1


def softmax() -> Any:
    x = pt.vector("x", shape=(1000,))
    return pytensor.function([x], pt.exp(x) / pt.exp(x).sum(), mode="NUMBA", name="soft")


def test_a_function_of_machine_code() -> None:
    f = softmax()
    f(np.linspace(0.0, 1.0, 1000))
    found = explain(f, "native")
    assert isinstance(found, NativeReport)
    assert found.is_native
    assert found.state is NativeState.WHOLE
    assert found.linker == "NumbaLinker"
    assert not found.not_native
    [region] = found.regions
    assert len(region.nodes) == len(f.maker.fgraph.apply_nodes)
    assert set(region.seconds) >= {"lower", "passes", "emit", "code"}
    assert region.origin in ("compiled", "memory", "disk")
    assert found.loops
    assert {loop.extent for loop in found.loops} == {1000}
    assert "the function soft of" in str(found)
    assert "machine code as a whole" in str(found)
    assert "define i64 @entry" in found.llvm
    assert print_program(parse_program(found.text)) == found.text


def test_loops_say_what_keeps_them_from_vectors() -> None:
    x = pt.vector("x", shape=(1000,))
    found = explain(FunctionGraph([x], [pt.cumsum(x), pt.exp(x)]), "native")
    whys = [loop.why_scalar for loop in found.loops]
    assert "an iteration needs the previous one" in whys
    assert all((loop.lanes > 1) == (loop.why_scalar is None) for loop in found.loops)
    written = [name for loop in found.loops for name in loop.writes]
    assert len(written) == 2


def test_loops_within_loops() -> None:
    x = pt.tensor("x", shape=(None, 300))
    found = explain(FunctionGraph([x], [x.sum(axis=1)]), "native")
    assert [(loop.depth, loop.extent) for loop in found.loops][:2] == [(0, None), (1, 300)]
    outer, inner = found.loops[:2]
    assert (outer.lanes, outer.why_scalar) == (1, "there is a loop inside")
    assert inner.n_reductions == 1


def test_buffers_have_names_and_sizes() -> None:
    x = pt.vector("x", shape=(1000,))
    out = pt.exp(x) - pt.exp(x).sum()
    out.name = "out"
    [region] = explain(FunctionGraph([x], [out]), "native").regions
    by_kind: dict[str, list[Any]] = {}
    for buffer in region.buffers:
        by_kind.setdefault(buffer.kind, []).append(buffer)
    [given], [result] = by_kind["input"], by_kind["output"]
    assert given.name.endswith(" x")
    assert result.name.endswith(" out")
    assert (result.dtype, result.shape, result.n_bytes) == ("float64", (1000,), 8000)
    temporaries = by_kind.get("temporary", [])
    assert region.scratch_bytes >= sum(one.n_bytes for one in temporaries if one.n_bytes)
    assert not region.has_late_sizes


def test_sizes_that_are_not_known_yet() -> None:
    x = pt.vector("x")
    [region] = explain(FunctionGraph([x], [pt.exp(x) / pt.exp(x).sum()]), "native").regions
    assert region.has_late_sizes == any(
        one.kind == "temporary" and one.n_bytes is None for one in region.buffers
    )
    assert region.origin is None
    assert "code" not in region.seconds


def test_nodes_without_a_rule() -> None:
    x = pt.vector("x")
    graph = FunctionGraph([x], [NoRule()(pt.exp(x))])
    found = explain(graph, "native")
    assert found.state is NativeState.COULD_NOT
    assert [str(one) for one in found.not_native] == ["1: NoRule: no rule for NoRule"]
    assert found.regions == ()
    assert found.text == found.llvm == ""
    assert "1: NoRule: no rule for NoRule" in str(found)


def test_a_graph_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        written.append(args)
        return lower_graph(*args, **kwargs)

    monkeypatch.setattr("pytensor_fuse._native.linking.graphs.lower_graph", counted)
    x = pt.vector("x")
    assert explain(FunctionGraph([x], [pt.exp(x)]), "native").regions
    assert len(written) == 1


def test_variables_that_no_machine_code_takes() -> None:
    z = pt.zvector("z")
    [named, *_] = explain(FunctionGraph([z], [z + 1]), "native").not_native
    assert named.name == "the variable z"
    assert "complex128" in named.why


@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_regions() -> None:
    x = pt.vector("x", shape=(50,))
    weights = pt.exp(x) / pt.exp(x).sum()
    f = pytensor.function([x], NoRule()(pt.cumsum(weights)), mode="NUMBA")
    found = explain(f, "native")
    assert found.state is NativeState.PARTS
    assert not found.is_native
    assert [one.why for one in found.not_native] == ["no rule for NoRule"]
    [region] = found.regions
    assert not any("NoRule" in name for name in region.nodes)
    assert len(region.nodes) == len(f.maker.fgraph.apply_nodes) - 1


def test_functions_of_others() -> None:
    x = pt.vector("x")
    f = pytensor.function([x], pt.exp(x), mode=Mode("py", "fast_run"))
    assert explain(f, "native").state is NativeState.OTHER


def test_functions_that_numba_compiled(numba_alone: None) -> None:
    x = pt.vector("x")
    f = pytensor.function([x], pt.exp(x), mode="NUMBA")
    assert explain(f, "native").state is NativeState.NUMBA
    assert explain(f, "native").regions == ()


def test_a_function_of_a_point() -> None:
    """An object that holds a function as ``f``, like PyMC's point functions."""

    class PointFunction:
        f = softmax()

    assert explain(PointFunction(), "native").is_native  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [3, None, pt.vector("x"), len])
def test_it_takes_nothing_else(wrong: Any) -> None:
    with pytest.raises(TypeError, match="explain takes a compiled function"):
        explain(wrong, "native")


def test_routines_that_are_called() -> None:
    x, y = pt.matrix("x"), pt.tensor3("y")
    outputs = [pt.dot(x, x.T), pt.linalg.cholesky(y.astype("float32"))]
    for out, name in zip(outputs, ("product", "factor"), strict=True):
        out.name = name
    found = explain(FunctionGraph([x, y], outputs), "native")
    product, factor = sorted(found.calls, key=lambda call: call.depth)
    assert (product.depth, product.function) == (0, "blas.dgemm")
    written, *read = product.operands
    assert written.endswith(" product")
    assert [name.split()[1] for name in read] == ["x", "x"]
    assert (factor.depth, factor.function) == (1, "lapack.spotrf")
    text, page = str(found), found.to_html()
    for call in found.calls:
        assert str(call) in text
        assert str(call) in page
    assert "2 calls of BLAS or LAPACK" in text
    assert "BLAS" not in str(explain(FunctionGraph([x], [pt.exp(x)]), "native"))
    calls = found.to_dict()["regions"][0]["calls"]
    assert sorted(call["name"] for call in calls) == ["matmul_nt", "potrf_l"]
    # The loop over the matrices reads and writes the operands of the routine.
    assert factor.operands[0] in found.loops[0].reads
    assert factor.operands[0] in found.loops[0].writes


def test_nothing_is_made_for_numba_by_asking() -> None:
    f = softmax()
    explain(f, "native")
    audit(f)
    assert f.vm._jit_fn is None


def test_it_is_the_same_each_time() -> None:
    def asked() -> str:
        x = pt.matrix("x")
        out = [pt.exp(x).sum(axis=0), pt.log(x) * 2]
        found = explain(FunctionGraph([x], out), "native").to_dict()
        for region in found["regions"]:
            del region["seconds"]
        return json.dumps(found, allow_nan=False)

    assert asked() == asked()


def test_reports_as_dicts_pages_and_pictures(tmp_path: Any) -> None:
    x = pt.tensor("x<&>", shape=(None, 300))
    found = explain(FunctionGraph([x], [x.sum(axis=1), pt.exp(x)]), "native")
    as_dict = found.to_dict()
    assert as_dict["state"] == "could"
    assert as_dict["regions"][0]["loops"][0]["extent"] is None
    json.dumps(as_dict, allow_nan=False)
    drawn = ET.fromstring(found.to_svg())
    boxes = [one for one in drawn.iter() if one.tag.endswith("}g")]
    assert len(boxes) == len(found.loops)
    assert "<pre>" in found._repr_html_()
    page = found.to_html()
    assert "x<&>" not in page
    assert found.to_html(tmp_path / "native.html") is None
    assert (tmp_path / "native.html").read_text(encoding="utf-8") == page
    assert found.to_svg(tmp_path / "native.svg") is None
    empty = explain(FunctionGraph([x], [NoRule()(x)]), "native")
    ET.fromstring(empty.to_svg())
    assert "no rule for NoRule" in empty.to_html()


def test_audits_say_it() -> None:
    x = pt.vector("x")
    found = audit(softmax())
    assert found.native.state is NativeState.WHOLE
    assert "machine code as a whole" in str(found)
    assert found.to_dict()["native"] == {"state": "whole", "not_native": []}
    assert not found.caching.numba
    refused = audit(FunctionGraph([x], [NoRule()(x)])).native
    assert [one.why for one in refused.not_native] == ["no rule for NoRule"]
    assert "no rule for NoRule" in refused.html()
    stock = audit(pytensor.function([x], NoRule()(x), mode=Mode("py", None))).native
    assert (stock.state, stock.not_native) == (NativeState.OTHER, ())


def test_a_rule_for_an_op_of_ones_own() -> None:
    from pytensor_fuse.native import lower

    class Squared(NoRule):
        def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
            outputs[0][0] = inputs[0] ** 2

    @lower.register(Squared)
    def squared(op: Any, node: Any, context: Any, inputs: Any) -> Any:
        [given] = inputs

        def at(index: Any) -> int:
            element = given.at(index)
            return context.builder.op("mul", element, element)

        return [context.materialized(given.dtype, given.lengths, at)]

    x = pt.matrix("x")
    f = pytensor.function([x], pt.exp(Squared()(x)).sum(axis=0), mode="NATIVE")
    assert explain(f, "native").is_native
    values = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
    np.testing.assert_allclose(f(values), np.exp(values**2).sum(axis=0), rtol=1e-13)


def test_the_mode_native_lists_what_has_no_rule() -> None:
    x = pt.vector("x")
    with pytest.raises(pytensor_fuse.exceptions.NativeLinkError, match="no rule for NoRule"):
        pytensor.function([x], NoRule()(x), mode="NATIVE")


def test_widths_are_read_from_the_assembly():
    x, groups = pt.vector("x"), pt.lvector("groups")
    outputs = [pt.log(x).sum(), pt.cumsum(pt.exp(x)), x[groups], pt.zeros(3)[groups].inc(x)]
    loops = explain(FunctionGraph([x, groups], outputs), "native").loops
    host = host_machine()
    told = {
        (loop.lanes > 1, loop.register_bits) for loop in loops if loop.register_bits is not None
    }
    assert (True, host.vector_bits) in told
    assert (False, 0) in told
    # A loop that is reported as vectorized has vectors.
    assert (True, 0) not in told


def test_widths_of_an_assembly():
    lines = """\
.LBB0_1:                                # %vectors3
                                        # =>This Inner Loop Header: Depth=1
\tcmpq\t%rax, %rcx
# %bb.2:                                # %lanes4
                                        #   in Loop: Header=BB0_1 Depth=1
\tvmulpd\t%ymm0, %ymm1, %ymm1
.LBB0_3:                                # %body5
                                        # =>This Inner Loop Header: Depth=1
\tvxorpd\t%xmm0, %xmm0, %xmm0
\tvaddsd\t%xmm0, %xmm1, %xmm1
.LBB0_4:                                # %lanes6
                                        # =>This Inner Loop Header: Depth=1
\tvaddps\t%xmm0, %xmm1, %xmm1
.LBB0_5:                                # %rest7
\tvmulpd\t%zmm0, %zmm1, %zmm1
\tmovq\t%rax, %rcx
"""
    notes = []
    for blocks in (("vectors3", "lanes4"), ("head2", "body5"), ("lanes6",), ("gone",)):
        notes.append(LoopNote(None, 1, None))
        notes[-1].blocks = blocks
    assert register_bits(lines, notes) == [256, 0, 128, None]
    assert register_bits("\tfmul v0.2d, v1.2d, v2.2d", notes) == [None] * 4
