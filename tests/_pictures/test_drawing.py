"""Where things stand in pictures: apart from each other, and edges go to the right."""

from __future__ import annotations

import itertools
from collections import Counter

import pytensor.tensor as pt
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.fg import FunctionGraph

import pytensor_fuse
from pytensor_fuse._pictures.drawing import Drawing, Places
from support.graphs import reverse
from support.random_graphs.building import Program, build
from support.random_graphs.strategies import any_programs


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


@given(any_programs(12), st.one_of(st.none(), st.integers(2, 6)))
def test_things_stand_apart(program: Program, max_operands: int | None) -> None:
    plan = pytensor_fuse.plan_fusion(build(program).fgraph, max_operands=max_operands)
    assert_is_laid_out(plan._drawing)


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
