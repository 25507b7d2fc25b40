"""Pictures of plans: what they show is what the plan says, and they hold any text."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.type import Type

import pytensor_fuse
from pytensor_fuse import FusionPlan, Reason, _core
from pytensor_fuse._pictures.drawing import Drawing, Places
from pytensor_fuse._pictures.picture import Box, Role, Picture
from pytensor_fuse._reports import files, page
from support.checker import is_elemwise
from support.graphs import reverse
from support.processes import run_python
from support.strategies import Program, any_programs, build

EVIL = "</script><b>&amp;\"'\\N\n\u2028{|}<!--"


def small_graph() -> FunctionGraph:
    x, y = pt.vectors("x", "y")
    a = pt.exp(x) + y
    a.name = "a"
    return FunctionGraph([x, y], [pt.sin(a) * a, reverse(a)], clone=False)


def node_of(plan: FusionPlan, op: str) -> int:
    (found,) = [i for i, node in enumerate(plan._picture.nodes) if node.op == op]
    return found


# The data ---------------------------------------------------------------------------------


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
    neighbours = set()
    for node in box.nodes:
        read = {picture.nodes[e.source].box for e in picture.edges if e.target == node}
        readers = {picture.nodes[e.target].box for e in picture.edges if e.source == node}
        first = picture.nodes[node]
        likeness = (first.role, first.op, bool(first.results))
        neighbours.add((frozenset(read), frozenset(readers), likeness))
    assert len(neighbours) == 1
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
    assert_is_laid_out(plan._drawing)
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
    trace = plan._picture.nodes[0].trace
    assert (trace and (trace.file, trace.line)) == expected


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
    assert exp.trace is not None
    assert Path(exp.trace.file).name == Path(__file__).name
    assert exp.trace.code == "made = pt.exp(x)  # the line that the picture names"
    assert Path(__file__).read_text(encoding="utf-8").splitlines()[exp.trace.line - 1].strip() == (
        exp.trace.code
    )
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


class ReadsAnything(Op):
    """Takes whatever there is."""

    __props__ = ()

    def make_node(self, *inputs: Variable) -> Apply:
        return Apply(self, inputs, [pt.vector()])

    def perform(self, node: Apply, inputs: list, outputs: list) -> None:
        raise NotImplementedError


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
    assert plan._picture.nodes[node_of(plan, "Exp")].trace is None
    assert all(len(node.label) <= 22 for node in plan._picture.nodes)


# Places -----------------------------------------------------------------------------------


def assert_is_laid_out(drawing: Drawing) -> None:
    for places in (drawing.collapsed, drawing.expanded):
        rectangles = [
            (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
            for x, y, w, h in zip(places.x, places.y, places.widths, places.heights, strict=False)
        ]
        assert_apart(rectangles)
    for box in drawing.picture.boxes:
        inner = [drawing.inner[node] for node in box.nodes]
        if len(box.nodes) > 1:
            assert_apart([(x, y, x + w, y + h) for x, y, w, h in inner])
    for i, box in enumerate(drawing.picture.boxes):
        for node in box.nodes:
            x, y, w, h = drawing.inner[node]
            assert x >= 0
            assert y >= 0
            assert x + w <= drawing.expanded.widths[i] + 1e-9
            assert y + h <= drawing.expanded.heights[i] + 1e-9
    between = set(drawing.edges) | set(drawing.hidden)
    assert between == set(drawing.picture.box_edges())
    assert not set(drawing.edges) & set(drawing.hidden)
    assert len(drawing.collapsed.bends) == len(drawing.edges)


def assert_apart(rectangles: list[tuple[float, float, float, float]]) -> None:
    for a, b in itertools.combinations(rectangles, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (a, b)


def goes_right(places: Places, edges: list[tuple[int, int]]) -> bool:
    return all(
        places.pieces[a] != places.pieces[b] or places.columns[a] < places.columns[b]
        for a, b in edges
    )


@given(any_programs(25))
def test_edges_go_to_the_right(program: Program) -> None:
    drawing = pytensor_fuse.plan_fusion(build(program).fgraph)._drawing
    assert goes_right(drawing.collapsed, drawing.edges)
    assert goes_right(drawing.expanded, drawing.edges)


def test_edges_of_what_very_many_read_are_set_apart() -> None:
    x = pt.vector("x")
    outputs = [reverse(pt.cumsum(x * i)) for i in range(300)]
    drawing = pytensor_fuse.plan_fusion(FunctionGraph([x], outputs, clone=False))._drawing
    pairs = list(drawing.picture.box_edges())
    readers, reads = (Counter(pair[end] for pair in pairs) for end in (0, 1))
    assert drawing.hidden == [(a, b) for a, b in pairs if max(readers[a], reads[b]) > 20]
    assert len(drawing.hidden) >= 300


def test_the_layout_refuses_what_is_no_graph() -> None:
    gaps = (1.0, 1.0, 1.0)
    with pytest.raises(_core.CycleError):
        _core.layered_layout([1.0, 1.0], [1.0, 1.0], [0, 1], [1, 0], gaps)
    with pytest.raises(_core.GraphError, match="widths has 1"):
        _core.layered_layout([1.0], [1.0, 1.0], [], [], gaps)
    with pytest.raises(_core.GraphError, match="no size"):
        _core.layered_layout([float("nan")], [1.0], [], [], gaps)
    with pytest.raises(_core.EdgeError):
        _core.layered_layout([1.0], [1.0], [0], [1], gaps)
    with pytest.raises(_core.IdError):
        _core.layered_layout([1.0], [1.0], [-1], [0], gaps)
    x, y, pieces, columns, bends, width = _core.layered_layout([], [], [], [], gaps)
    assert [a.tolist() for a in (x, y, pieces, columns, bends)] == [[], [], [], [], [0]]
    assert width == 0


# Texts ------------------------------------------------------------------------------------


def evil_plan() -> FusionPlan:
    x = pt.vector(EVIL)
    a = pt.exp(x)
    a.name = EVIL
    a.tag.trace = [[(EVIL, 7, "f", EVIL)]]
    return pytensor_fuse.plan_fusion(FunctionGraph([x], [reverse(a), pt.sin(a)], clone=False))


class Tags(HTMLParser):
    """Counts the tags of a page, and keeps the texts of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.attributes: dict[str, str | None] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag == "iframe":
            self.attributes = dict(attrs)


def tags(text: str) -> Tags:
    parser = Tags()
    parser.feed(text)
    return parser


def page_data(text: str) -> dict:
    (literal,) = re.findall(r"<script>const DATA = (.*?);</script>", text, re.DOTALL)
    return json.loads(literal)


def test_a_page_holds_any_text() -> None:
    plain = pytensor_fuse.plan_fusion(small_graph()).to_html()
    evil = evil_plan().to_html()
    assert tags(plain).seen == tags(evil).seen
    assert EVIL in page_data(evil)["strings"]


def test_an_svg_holds_any_text() -> None:
    root = ET.fromstring(evil_plan().to_svg())
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(EVIL in title for title in titles)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        *("svg", "rect", "text", "g", "title", "path"),
    }


def test_control_characters_and_lone_surrogates() -> None:
    x = pt.vector("a\x00b\ud800c\x1b")
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [pt.exp(x)], clone=False))
    for text in (plan.to_html(), plan.to_svg(), plan.to_dot(), plan._repr_html_()):
        text.encode()
    ET.fromstring(plan.to_svg())
    assert "a\ufffdb\ufffdc\ufffd" in plan.to_dot()


def run_dot(text: str) -> dict:
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed: apt-get install graphviz")
    done = subprocess.run(
        ["dot", "-Tjson"], input=text.encode(), capture_output=True, check=True, timeout=60
    )
    assert done.stderr == b""
    return json.loads(done.stdout)


def test_graphviz_reads_what_is_written() -> None:
    plan = pytensor_fuse.plan_fusion(small_graph())
    read = run_dot(plan.to_dot())
    picture = plan._picture
    clusters = [o for o in read["objects"] if o["name"].startswith("cluster_")]
    assert len(clusters) == len(plan.kernels)
    names = {o["_gvid"]: o["name"] for o in read["objects"]}
    for cluster, kernel in zip(clusters, plan.kernels, strict=True):
        assert len(cluster["nodes"]) == len(kernel.nodes)
    edges = {(names[e["tail"]], names[e["head"]]) for e in read["edges"]}
    assert edges == {(f"n{edge.source}", f"n{edge.target}") for edge in picture.edges}


def test_graphviz_reads_texts_of_any_length() -> None:
    # It refuses strings of more than 16,384 bytes.
    x = pt.vector("&" * 40_000)
    a = pt.exp(x)
    a.name = "\u2028" * 40_000
    a.tag.trace = [[("f" * 40_000, 7, "f", '"' * 40_000)]]
    many = ManyResults(3000)(a, return_list=True)
    fgraph = FunctionGraph([x], [*many, LongText()(a)], clone=False)
    plan = pytensor_fuse.plan_fusion(fgraph)
    longest = max(map(len, re.findall(r'"(?:[^"\\]|\\.)*"', plan.to_dot())))
    assert longest < 16_000
    titles = re.findall(r"<title>(.*?)</title>", plan.to_svg(), re.DOTALL)
    assert max(map(len, titles)) < 16_000
    tips = [o.get("tooltip", "") for o in run_dot(plan.to_dot())["objects"]]
    assert any(tip.startswith("Exp") for tip in tips)


def test_labels_are_short() -> None:
    x = pt.vector("x" * 100)
    y = LongText("op{")(LongText("(")(pt.exp(x)))
    y.name = "y" * 100
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [y, y.sum()], clone=False))
    texts = [text for node in plan._picture.nodes for text in (node.label, node.caption)]
    texts += [text for box in plan._picture.boxes for text in (box.label, box.caption)]
    assert max(map(len, texts)) == 22


class LongText(ReadsAnything):
    def __init__(self, part: str = "op{") -> None:
        self.part = part

    def __str__(self) -> str:
        return self.part * 20_000


class ManyResults(ReadsAnything):
    __props__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = n

    def make_node(self, *inputs: Variable) -> Apply:
        return Apply(self, inputs, [pt.tensor(dtype="float64", shape=(i,)) for i in range(self.n)])


def test_graphviz_reads_any_text() -> None:
    read = run_dot(evil_plan().to_dot())
    tips = [o.get("tooltip", "") for o in read["objects"]]
    # Its own escapes are still in what it gives back: undone, the text is what it was.
    shown = [tip.replace("\\n", "\n").replace("\\\\", "\\").replace("&amp;", "&") for tip in tips]
    assert any(EVIL in text for text in shown)


# In a notebook ----------------------------------------------------------------------------


def test_a_notebook_gets_a_frame_without_rights() -> None:
    for plan in (pytensor_fuse.plan_fusion(small_graph()), evil_plan()):
        text = plan._repr_html_()
        shown = tags(text)
        assert set(shown.seen) == {"table", "thead", "tr", "th", "td", "iframe"}
        assert shown.attributes["sandbox"] == "allow-scripts"
        assert shown.attributes["srcdoc"] == plan.to_html()
        assert "<style" not in text
        assert "<script" not in text


def test_a_notebook_gets_figures_alone_of_a_large_plan() -> None:
    x = pt.vector("x")
    outputs = [reverse(x * i) for i in range(1001)]
    text = pytensor_fuse.plan_fusion(FunctionGraph([x], outputs, clone=False))._repr_html_()
    assert "to_html" in text
    assert len(text) < 2000


# Files ------------------------------------------------------------------------------------


def test_a_file_is_the_page(tmp_path: Path) -> None:
    plan = pytensor_fuse.plan_fusion(small_graph())
    path = tmp_path / "plan.html"
    assert plan.to_html(path) is None
    assert path.read_text(encoding="utf-8") == plan.to_html()
    assert plan.to_html(str(path)) is None
    assert [p.name for p in tmp_path.iterdir()] == ["plan.html"]


@pytest.mark.parametrize("bad", ["missing/plan.html", "."])
def test_bad_paths_are_named(tmp_path: Path, bad: str) -> None:
    with pytest.raises(OSError, match=re.escape(str((tmp_path / bad).name or tmp_path.name))):
        pytensor_fuse.plan_fusion(small_graph()).to_html(tmp_path / bad)
    assert list(tmp_path.iterdir()) == []


def test_no_path_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="path is empty"):
        pytensor_fuse.plan_fusion(small_graph()).to_html("")


def test_the_file_is_named_that_cannot_be_written() -> None:
    if not Path("/proc/self").is_dir():
        pytest.skip("needs a place where none may write")
    with pytest.raises(OSError, match=r"/proc/plan\.html"):
        files.write("/proc/plan.html", "new")


def test_long_names(tmp_path: Path) -> None:
    path = tmp_path / ("a" * 250)
    files.write(path, "new")
    assert path.read_text(encoding="utf-8") == "new"


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    for name in ("old", "missing"):
        target, link = tmp_path / "pages" / name, tmp_path / name
        link.symlink_to(target)
        if name == "old":
            target.write_text("old", encoding="utf-8")
        files.write(link, "new")
        assert link.is_symlink()
        assert target.read_text(encoding="utf-8") == "new"
    assert {path.name for path in (tmp_path / "pages").iterdir()} == {"old", "missing"}
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="loop"):
        files.write(loop, "new")


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Open for reading too, or opening it for writing would wait.
    reader = os.open(pipe, os.O_RDWR)
    try:
        files.write(pipe, "new")
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_file_is_for_those_whom_the_umask_lets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0o027)
    # It holds for all threads: it is not to be changed, not even for a moment.
    umask = os.umask
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was changed"))
    try:
        files.write(tmp_path / "new", "new")
        (tmp_path / "old").write_text("old", encoding="utf-8")
        (tmp_path / "old").chmod(0o604)
        files.write(tmp_path / "old", "new")
    finally:
        umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"new": 0o640, "old": 0o604}


# The same everywhere ----------------------------------------------------------------------

DIGESTS = """
    import hashlib
    import pytensor.tensor as pt
    import pytensor_fuse
    from pytensor.graph.fg import FunctionGraph

    x, y = pt.vectors("x", "y")
    out = x
    for i in range(30):
        out = pt.sin(out[::-1]) * y + pt.cos(out) / (i + 1)
    fgraph = FunctionGraph([x, y], [out, pt.exp(x).sum()])
    plan = pytensor_fuse.plan_fusion(fgraph)
    for text in (plan.to_html(), plan.to_svg(), plan.to_dot(), plan._repr_html_()):
        print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_pictures_are_the_same_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for seed in ("0", "1", "4711"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        digests.add(run_python(DIGESTS).stdout)
    assert len(digests) == 1, digests
    assert len(next(iter(digests)).split()) == 4
