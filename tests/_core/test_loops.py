"""Loops, buffers and regions of native code: what only Python can get wrong, and plain checks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytensor_fuse._core import (
    CycleError,
    EdgeError,
    GraphError,
    IdError,
    native_regions,
    place_buffers,
    schedule_loops,
)

ALONE = -1


@st.composite
def forward_edges(draw, n_items):
    if n_items < 2:
        return []
    item = st.integers(0, n_items - 1)
    pairs = draw(st.lists(st.tuples(item, item), max_size=2 * n_items))
    return [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]


@st.composite
def programs(draw):
    labels = draw(st.lists(st.integers(ALONE, 3), max_size=15))
    edges = draw(forward_edges(len(labels)))
    fuse = draw(st.lists(st.booleans(), min_size=len(edges), max_size=len(edges)))
    return labels, edges, fuse


@given(programs())
def test_groups_can_run_one_after_the_other(program):
    labels, edges, fuse = program
    froms, tos = [a for a, _ in edges], [b for _, b in edges]
    groups = schedule_loops(labels, froms, tos, fuse)
    assert sorted(set(groups)) == list(range(len(set(groups))))
    for (a, b), fuses in zip(edges, fuse, strict=True):
        assert groups[a] < groups[b] or (fuses and groups[a] == groups[b])
    for a, b in itertools.combinations(range(len(labels)), 2):
        if groups[a] == groups[b]:
            assert labels[a] == labels[b] != ALONE
    arrays = np.array(labels, "int32"), np.array(froms, "uint32"), np.array(tos, "int64")
    assert schedule_loops(*arrays, np.array(fuse, bool)) == groups


def test_a_label_of_a_late_item_waits():
    assert schedule_loops([5, 6, 5], [1], [2], [True]) == [1, 0, 1]
    assert schedule_loops([5, 5], [], [], []) == [0, 0]
    for alone in (-1, 2**32 - 1):
        assert len(set(schedule_loops([alone, alone], [], [], []))) == 2


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (([0, 0], [0], [2], [True]), EdgeError, r"edge 0 \(0 -> 2\)"),
        (([0, 0], [-1], [1], [True]), EdgeError, r"edge 0 \(-1 -> 1\)"),
        (([0, 0], [0, 2**40], [1, 1], [True, True]), EdgeError, r"edge 1 \(1099511627776 -> 1\)"),
        (([0, 0], [1], [0], [True]), EdgeError, "edge 0 .* goes backward"),
        (([0, 0], [1], [1], [True]), EdgeError, "edge 0 is a self-loop"),
        (([0, 0], [0], [], [True]), GraphError, "froms has 1 .* tos has 0"),
        (([0, 0], [0], [1], []), GraphError, "froms has 1 .* can_fuse has 0"),
        (([0, -2], [0], [1], [True]), IdError, "label -2"),
        (([0, 2**32], [0], [1], [True]), IdError, "label 4294967296"),
        (([0, 0.5], [0], [1], [True]), TypeError, "labels"),
        (([0, 0], [0], [1], [None]), TypeError, "can_fuse"),
    ],
)
def test_wrong_programs(arguments, error, text):
    with pytest.raises(error, match=text):
        schedule_loops(*arguments)


buffers = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 10), st.integers(0, 5)), max_size=15
)


@given(buffers, st.sampled_from([1, 8, 64]))
def test_buffers_that_are_alive_at_once_are_apart(buffers, alignment):
    sizes, first, life = map(list, zip(*buffers, strict=True)) if buffers else ([], [], [])
    last = [start + n for start, n in zip(first, life, strict=True)]
    offsets, total = place_buffers(sizes, first, last, alignment)
    assert all(offset % alignment == 0 for offset in offsets)
    ends = [offset + size for offset, size in zip(offsets, sizes, strict=True)]
    assert max(ends, default=0) == total
    for a, b in itertools.combinations(range(len(sizes)), 2):
        if first[a] <= last[b] and first[b] <= last[a]:
            assert ends[a] <= offsets[b] or ends[b] <= offsets[a] or not (sizes[a] and sizes[b])
    arrays = np.array(sizes, "uint32"), np.array(first, "int32"), np.array(last, "int64")
    assert place_buffers(*arrays, alignment) == (offsets, total)


def test_large_buffers():
    assert place_buffers([2**40, 2**41], [0, 1], [0, 1], 64) == ([0, 0], 2**41)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (([1, 2], [0], [0, 0], 8), GraphError, "first has 1 .* sizes has 2"),
        (([1], [0], [], 8), GraphError, "last has 0 .* sizes has 1"),
        (([-1], [0], [0], 8), IdError, "size -1"),
        (([1], [-1], [0], 8), IdError, "statement -1"),
        (([1], [0], [2**32], 8), IdError, "statement 4294967296"),
        (([1, 1], [0, 3], [0, 2], 8), GraphError, "buffer 1 is alive from statement 3 to 2"),
        (([1], [0], [0], 0), GraphError, "the alignment is 0"),
        (([1], [0], [0], 24), GraphError, "the alignment is 24"),
        (([1], [0], [0], -8), IdError, "alignment -8"),
        (([2**62, 2**62], [0, 0], [0, 0], 8), GraphError, "buffer 1 has 4611686018427387904"),
        (([0.5], [0], [0], 8), TypeError, "sizes"),
    ],
)
def test_wrong_buffers(arguments, error, text):
    with pytest.raises(error, match=text):
        place_buffers(*arguments)


@st.composite
def graphs(draw):
    is_native = draw(st.lists(st.booleans(), max_size=12))
    names = draw(st.permutations(range(len(is_native))))
    edges = draw(forward_edges(len(is_native)))
    return is_native, [(names[a], names[b]) for a, b in edges]


@given(graphs())
def test_regions_can_run_one_after_the_other(graph):
    is_native, edges = graph
    froms, tos = [a for a, _ in edges], [b for _, b in edges]
    regions = native_regions(len(is_native), froms, tos, is_native)
    assert all(regions[a] <= regions[b] for a, b in edges)
    for a, b in itertools.combinations(range(len(is_native)), 2):
        if regions[a] == regions[b]:
            assert is_native[a]
            assert is_native[b]
    if all(is_native):
        assert set(regions) <= {0}
    arrays = np.array(froms, "uint32"), np.array(tos, "int32"), np.array(is_native, bool)
    assert native_regions(len(is_native), *arrays) == regions


def test_what_nothing_is_between_is_one_region():
    # 0 -> 1 -> 2 -> 3 with 1 not native, and 4 -> 3.
    natives = [True, False, True, True, True]
    assert native_regions(5, [0, 1, 2, 4], [1, 2, 3, 3], natives) == [0, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((2, [0, 1], [1, 0], [True, True]), CycleError, "0 -> 1"),
        ((2, [0], [2], [True, True]), EdgeError, r"edge 0 \(0 -> 2\)"),
        ((2, [1], [1], [True, True]), EdgeError, "edge 0 is a self-loop"),
        ((2, [0], [1, 1], [True, True]), GraphError, "sources has 1 .* targets has 2"),
        ((2, [0], [1], [True]), GraphError, "is_native has 1 .* nodes has 2"),
        ((-1, [], [], []), IdError, "n_nodes -1"),
    ],
)
def test_wrong_graphs(arguments, error, text):
    with pytest.raises(error, match=text):
        native_regions(*arguments)
