"""Pictures of plans: what they show is what the plan says."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.type import Type

import pytensor_fuse
from pytensor_fuse._pictures.picture import Box, Picture, Role
from pytensor_fuse.reports import FusionPlan, Reason
from support.checker import is_elemwise
from support.graphs import ReadsAnything, reverse, small_graph
from support.random_graphs.building import Program, build
from support.random_graphs.strategies import any_programs


def node_of(plan: FusionPlan, op: str) -> int:
    (found,) = [i for i, node in enumerate(plan._picture.nodes) if node.op == op]
    return found


def assert_is_the_plan(plan: FusionPlan, fgraph: FunctionGraph) -> None:
    """Compare a picture with the graph and the plan, by their definitions."""
    picture, applies = plan._picture, plan._nodes
    kernels = {box.kernel: box.nodes for box in picture.boxes if box.kernel is not None}
    assert sorted(kernels) == list(range(len(plan.kernels)))
    for number, kernel in enumerate(plan.kernels):
        assert [applies[i] for i in kernels[number]] == list(kernel.nodes)
    in_boxes = [node for box in picture.boxes for node in box.nodes]
    assert sorted(in_boxes) == list(range(len(picture.nodes)))
    assert all(i in picture.boxes[node.box].nodes for i, node in enumerate(picture.nodes))
    for box in picture.boxes:
        if box.kernel is None and len(box.nodes) > 1:
            assert_are_alike(picture, box)
    fused = {node for kernel in plan.kernels for node in kernel.nodes}
    for apply, node in zip(applies, picture.nodes, strict=False):
        assert (node.role is Role.FUSED) == (apply in fused)
        if node.role is Role.ALONE:
            assert is_elemwise(apply)
        assert node.op == str(apply.op)
        assert node.results == tuple(i for i, v in enumerate(fgraph.outputs) if v.owner is apply)
    assert all(node.role in (Role.INPUT, Role.CONSTANT) for node in picture.nodes[len(applies) :])
    n_constants = sum(node.role is Role.CONSTANT for node in picture.nodes)
    assert n_constants == len({v for v in fgraph.outputs if isinstance(v, Constant)})

    position = {apply: i for i, apply in enumerate(applies)}
    expected = {
        (position[v.owner], position[apply]) for apply in applies for v in apply.inputs if v.owner
    }
    drawn = [(edge.source, edge.target) for edge in picture.edges]
    assert len(set(drawn)) == len(drawn)
    assert {pair for pair in drawn if pair[0] < len(applies)} == expected
    leaves = {v for apply in applies for v in apply.inputs if v.owner is None}
    leaves |= {v for v in fgraph.outputs if v.owner is None}
    n_leaves = sum(not isinstance(v, Constant) for v in leaves)
    assert len(picture.nodes) == len(applies) + n_leaves + n_constants
    places = [picture.nodes[a].box - picture.nodes[b].box for a, b in drawn]
    assert max(places, default=0) <= 0, "boxes are in topological order"


def assert_are_alike(picture: Picture, box: Box) -> None:
    neighbors = set()
    for node in box.nodes:
        read = {picture.nodes[e.source].box for e in picture.edges if e.target == node}
        readers = {picture.nodes[e.target].box for e in picture.edges if e.source == node}
        first = picture.nodes[node]
        likeness = (first.role, first.op, bool(first.results))
        neighbors.add((frozenset(read), frozenset(readers), likeness))
    assert len(neighbors) == 1
    assert len(box.nodes) >= 5


def assert_reasons_are_true(plan: FusionPlan) -> None:
    picture, applies = plan._picture, plan._nodes
    for i, edge in enumerate(picture.edges):
        if edge.source >= len(applies):
            assert edge.why is None
            continue
        truth = plan.why_not(applies[edge.source], applies[edge.target])
        if edge.why is None:
            assert truth.reason is Reason.SAME_KERNEL
            continue
        assert truth.reason is not Reason.SAME_KERNEL
        fields = ("reason", "culprit", "path", "detail")
        for field in fields:
            assert getattr(edge.why, field) == getattr(truth, field)
        if i in picture.paths:
            steps, left_out = picture.paths[i]
            assert tuple(applies[n] for n in steps) == truth.path
            assert left_out == 0
        else:
            assert truth.path == ()


@given(any_programs(12), st.one_of(st.none(), st.integers(2, 6)))
def test_the_picture_is_the_plan(program: Program, max_operands: int | None) -> None:
    fgraph = build(program).fgraph
    plan = pytensor_fuse.plan_fusion(fgraph, max_operands=max_operands)
    assert_is_the_plan(plan, fgraph)
    assert_reasons_are_true(plan)
    ET.fromstring(plan.to_svg())


def test_a_cycle_names_its_path() -> None:
    plan = pytensor_fuse.plan_fusion(
        FunctionGraph([x := pt.vector("x")], [(a := pt.sin(x)) + reverse(a)], clone=False)
    )
    picture = plan._picture
    ((edge, (path, _)),) = picture.paths.items()
    assert [picture.nodes[i].op for i in path] == ["Sin", str(reverse(x).owner.op), "Add"]
    assert picture.edges[edge].why.reason is Reason.CYCLE


def test_long_paths_show_their_ends_and_how_much_is_between() -> None:
    x = pt.vector("x")
    taps, out, n = [], x, 300
    for _ in range(n):
        taps.append(pt.exp(out))
        out = pt.cumsum(taps[-1])
    outputs = [pt.cumsum(taps[i] * taps[n - 1 - i]) for i in range(n // 2)]
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], outputs, clone=False), max_operands=3)
    picture = plan._picture
    edge = max(picture.paths, key=lambda i: len(picture.edges[i].why.path))
    why = picture.edges[edge].why
    assert len(why.path) == 599
    steps, left_out = picture.paths[edge]
    shown = [plan._nodes[node] for node in steps]
    assert (shown[:-1], shown[-1]) == (list(why.path[: len(steps) - 1]), why.path[-1])
    assert len(shown) + left_out == len(why.path)
    assert why.detail.count(" -> ") == 30
    assert why.detail.endswith(f"-> ... ({left_out} more) -> Exp")
    assert plan.why_not(why.path[0], why.path[-1]).path == why.path
    assert len(plan.to_html()) < 400 * len(picture.nodes)
    assert len(plan.to_dot()) < 600 * len(picture.nodes)


def test_nodes_that_are_alike_share_a_box() -> None:
    x, y = pt.vectors("x", "y")
    outputs = [reverse(x), *(pt.add(*(reverse(x) for _ in range(6)), y) for _ in range(2))]
    inputs = pt.vectors(*"abcdef")
    plan = pytensor_fuse.plan_fusion(
        FunctionGraph([x, y, *inputs], [*outputs, pt.concatenate(inputs)], clone=False)
    )
    assert_is_the_plan(plan, plan._fgraph)
    picture = plan._picture
    bundles = [box for box in picture.boxes if len(box.nodes) > 1 and box.kernel is None]
    label = picture.nodes[bundles[-1].nodes[0]].label
    assert sorted(box.label for box in bundles) == [f"12 \u00d7 {label}", "6 inputs"]


def test_figures_are_those_of_the_plan_and_of_the_graph_after_it() -> None:
    fgraph = small_graph()
    plan = pytensor_fuse.plan_fusion(fgraph)
    stats = plan.stats
    figures = {name: (before, after) for name, before, after in plan._picture.figures}
    assert figures["kernels"] == (stats.kernels_before, stats.kernels_after)
    assert figures["arrays read and written"] == (stats.arrays_before, stats.arrays_after)
    before = len(fgraph.apply_nodes)
    plan.apply()
    assert figures["nodes"] == (before, len(fgraph.apply_nodes))


def unnamed_graph() -> FunctionGraph:
    """A graph whose unfusable nodes read what has no name: it prints as the nodes before it."""
    x = pt.vector("x")
    a = pt.cos(pt.exp(x))
    return FunctionGraph([x], [pt.sin(a) * reverse(a), pt.cumsum(a)], clone=False)


def apply_it(plan: FusionPlan) -> None:
    plan.apply()


def replace_what_is_read(plan: FusionPlan) -> None:
    (a,) = (node.outputs[0] for node in plan._fgraph.apply_nodes if str(node.op) == "Cos")
    plan._fgraph.replace(a, pt.tanh(plan._fgraph.inputs[0]))


@pytest.mark.parametrize("change", [apply_it, replace_what_is_read])
def test_a_picture_is_of_the_graph_as_it_was(change: Callable[[FusionPlan], None]) -> None:
    plans = [pytensor_fuse.plan_fusion(unnamed_graph()) for _ in range(2)]
    change(plans[1])
    for text in ("to_svg", "to_dot"):
        assert getattr(plans[0], text)() == getattr(plans[1], text)()
    # The line of `unnamed_graph` is the same for both.
    assert plans[0].to_html() == plans[1].to_html()
    first, second = ([str(edge.why) for edge in plan._picture.edges] for plan in plans)
    assert first == second
    assert any("not an Elemwise node" in why for why in first)


def test_a_node_of_very_many_inputs_is_named_once() -> None:
    scalars = pt.scalars(1500)
    stacked = pt.stack([pt.exp(scalar) for scalar in scalars])
    plan = pytensor_fuse.plan_fusion(FunctionGraph(scalars, [stacked], clone=False))
    reasons = {id(edge.why): edge.why for edge in plan._picture.edges if edge.why is not None}
    assert sum(len(why.detail) for why in reasons.values()) < 50 * len(scalars)
    assert len(plan.to_dot()) < 1000 * len(scalars)


LIBRARY = f"{sysconfig.get_path('purelib')}/pymc/model.py"
STDLIB = f"{sysconfig.get_path('stdlib')}/functools.py"


@pytest.mark.parametrize(
    ("stacks", "expected"),
    [
        (
            [[("mine.py", 1, "f", "a"), (LIBRARY, 2, "g", "b"), (STDLIB, 3, "h", "c")]],
            ("mine.py", 1),
        ),
        (
            [[("mine.py", 1, "f", "a"), ("<ipython-input-7>", 5, "g", "b")]],
            ("<ipython-input-7>", 5),
        ),
        ([[(LIBRARY, 2, "g", "b")], [("mine.py", 1, "f", "a")]], ("mine.py", 1)),
        (
            [[("/usr/lib/python3/dist-packages/x.py", 1, "f", "a"), (LIBRARY, 2, "g", "b")]],
            (LIBRARY, 2),
        ),
        ([[(pt.__file__, 9, "f", "a"), ("<frozen runpy>", 4, "f", None)]], ("<frozen runpy>", 4)),
        ([[("mine.py", None, None, None)]], ("mine.py", 0)),
        ([[(STDLIB, 1, "f", "a"), (LIBRARY, 2, "g", "b")], [(LIBRARY, 3, "g", "b")]], (LIBRARY, 2)),
        (["foo"], None),
        ([("a",), None, 3], None),
        (7, None),
    ],
)
def test_the_line_of_the_user_is_named(stacks: object, expected: tuple[str, int] | None) -> None:
    x = pt.vector("x")
    y = pt.exp(x)
    y.tag.trace = stacks
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [y], clone=False))
    line = plan._picture.nodes[0].source_line
    assert (line and (line.file, line.line)) == expected


def test_what_a_node_says() -> None:
    x = pt.tensor("x", dtype="float32", shape=(None, 3))
    made = pt.exp(x)  # the line that the picture names
    made.name = "made"
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [made, made * 2.5], clone=False))
    exp, mul = (plan._picture.nodes[node_of(plan, op)] for op in ("Exp", "Mul"))
    assert exp.types == ("float32 (?, 3)",)
    assert exp.names == ("made",)
    assert exp.caption == "made"
    assert exp.results == (0,)
    assert exp.source_line is not None
    assert Path(exp.source_line.file).name == Path(__file__).name
    assert exp.source_line.code == "made = pt.exp(x)  # the line that the picture names"
    assert Path(__file__).read_text(encoding="utf-8").splitlines()[
        exp.source_line.line - 1
    ].strip() == (exp.source_line.code)
    assert mul.results == (1,)


def test_types_and_constants() -> None:
    x = pt.tensor("x", dtype="int64", shape=(4,))
    scalar = pt.scalar("s", dtype="bool")
    big = pt.constant(np.arange(4.0))
    fgraph = FunctionGraph(
        [x, scalar], [pt.mul(x, big), pt.add(x, pt.constant(np.float64(0.25)))], clone=False
    )
    plan = pytensor_fuse.plan_fusion(fgraph)
    nodes = plan._picture.nodes
    assert nodes[node_of(plan, "Mul")].constants == ("float64 (4,)",)
    shown = [text for node in nodes for text in node.constants]
    assert "0.25" in shown
    inputs = [node for node in nodes if node.role is Role.INPUT]
    assert [(node.label, node.types) for node in inputs] == [("x", ("int64 (4,)",))]


def test_a_constant_that_is_a_result_is_drawn() -> None:
    x = pt.vector("x")
    three = pt.constant(3.0)
    plan = pytensor_fuse.plan_fusion(
        FunctionGraph([x], [three, x * three, three], clone=False), target="c"
    )
    nodes = plan._picture.nodes
    (node,) = [node for node in nodes if node.role is Role.CONSTANT]
    assert (node.label, node.results, node.op) == ("3", (0, 2), "")
    assert sorted(i for node in nodes for i in node.results) == [0, 1, 2]
    position = nodes.index(node)
    assert all(position not in (edge.source, edge.target) for edge in plan._picture.edges)
    titles = ET.fromstring(plan.to_svg()).iter("{http://www.w3.org/2000/svg}title")
    assert [title.text for title in titles].count(node.tip) == 1
    assert "peripheries" in next(
        line for line in plan.to_dot().splitlines() if f"n{position} [" in line
    )


class UnhashableType(Type):
    """A type that cannot be a key."""

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None

    def filter(self, data: object, strict: bool = False, allow_downcast: object = None) -> object:
        return data


def test_types_that_cannot_be_hashed_and_names_that_are_no_texts() -> None:
    x = pt.vector()
    x.name = ("a", 1)
    made = ReadsAnything()(UnhashableType()("odd"), x)
    made.name = ("b", 2)
    plan = pytensor_fuse.plan_fusion(FunctionGraph(outputs=[made], clone=False))
    nodes = plan._picture.nodes
    assert nodes[0].names == ("('b', 2)",)
    assert [node.label for node in nodes[1:]] == ["odd", "('a', 1)"]
    assert plan.to_dot()
    assert plan.to_svg()
    assert plan.to_html()


class AnyType(Type):
    """Holds whatever there is."""

    def filter(self, data: object, strict: bool = False, allow_downcast: object = None) -> object:
        return data

    def __str__(self) -> str:
        return "AnyType"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (np.array([2.5]), "2.5"),
        (np.float32(2.5), "2.5"),
        # Its size is the number of values that it stores.
        (scipy.sparse.csr_matrix(([2.0], ([0], [1])), shape=(3, 3)), "AnyType"),
        (SimpleNamespace(size=1), "AnyType"),
        (SimpleNamespace(size=np.array([1, 2])), "AnyType"),
        (np.array([10**5000], dtype=object), "AnyType"),
        (np.array(["ab" * 5000]), "ab" * 149 + "a\u2026"),
    ],
)
def test_constants_of_any_kind(data: object, shown: str) -> None:
    made = ReadsAnything()(Constant(AnyType(), data))
    plan = pytensor_fuse.plan_fusion(FunctionGraph([], [made], clone=False))
    assert plan._picture.nodes[0].constants == (shown,)


def test_graphs_without_nodes() -> None:
    x = pt.vector("x")
    for outputs in ([], [x], [x, x]):
        plan = pytensor_fuse.plan_fusion(FunctionGraph([x], outputs, clone=False))
        assert "<canvas" in plan.to_html()
        ET.fromstring(plan.to_svg())
        assert plan.to_dot().startswith("digraph")
        assert plan._repr_html_()


def test_a_node_without_a_trace_and_ops_with_long_texts() -> None:
    x = pt.vector("x")
    y = pt.exp(x)
    del y.tag.trace
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [y.sum(axis=0)], clone=False))
    assert plan._picture.nodes[node_of(plan, "Exp")].source_line is None
    assert all(len(node.label) <= 22 for node in plan._picture.nodes)


# Rows of what cannot be fused -------------------------------------------------------------


def rows_of(plan: FusionPlan) -> list[list[str]]:
    boxes = plan._picture.boxes
    return [
        [plan._picture.nodes[i].op for i in box.nodes]
        for box in boxes
        if box.kernel is None and box.label.endswith("nodes in a row")
    ]


def blocks(n: int, *, read_twice: bool = False) -> FusionPlan:
    """Kernels with a sum of three nodes between that only passes on, or is read inside, too."""
    x = pt.vector("x")
    out, more = x, []
    for _ in range(n):
        inside = pt.cumsum(pt.sin(out) * 2)
        more += [inside] if read_twice else []
        out = pt.exp(reverse(pt.cumsum(inside)))
    return pytensor_fuse.plan_fusion(FunctionGraph([x], [out, *more], clone=False))


def test_what_only_passes_on_shares_a_box_in_large_plans() -> None:
    plan = blocks(12)
    assert len(plan._picture.nodes) > 60
    assert len(rows_of(plan)) == 12
    for row in rows_of(plan):
        assert len(row) == 3
        assert row[0] == row[1]
    # In small plans each stands for itself.
    assert rows_of(blocks(6)) == []
    assert len(blocks(6)._picture.nodes) <= 60


def test_rows_end_where_something_else_reads() -> None:
    """A result of the graph, or a node with two readers, is seen by itself."""
    assert {len(row) for row in rows_of(blocks(12, read_twice=True))} == {2}


def test_rows_are_rows() -> None:
    """The oracle: of each row, and of no other nodes, each reads the one before it alone."""
    plan = blocks(12, read_twice=True)
    picture = plan._picture
    reads = {
        i: [e.source for e in picture.edges if e.target == i] for i in range(len(picture.nodes))
    }
    readers = {
        i: [e.target for e in picture.edges if e.source == i] for i in range(len(picture.nodes))
    }

    def passes(i: int) -> bool:
        node = picture.nodes[i]
        plain = node.role is Role.UNFUSABLE and not node.results
        return plain and len(reads[i]) == len(readers[i]) == 1

    for i in range(len(picture.nodes)):
        for j in readers[i]:
            in_row = picture.boxes[picture.nodes[i].box].label.endswith("in a row")
            same = picture.nodes[i].box == picture.nodes[j].box
            assert (in_row and same) == (passes(i) and passes(j))
    for edge in picture.edges:
        if picture.boxes[picture.nodes[edge.source].box].label.endswith("in a row"):
            assert edge.why is not None
