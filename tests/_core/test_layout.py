"""The layered layout refuses what is no graph."""

from __future__ import annotations

import pytest

from pytensor_fuse import _core


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
