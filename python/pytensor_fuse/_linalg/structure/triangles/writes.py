"""Diagonals that are written or read by indices, constant ones or those of masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import ScalarConstant
from pytensor.tensor.basic import Nonzero, ScalarFromTensor, TensorFromScalar

from pytensor_fuse._linalg.structure.matrices import same
from pytensor_fuse._linalg.structure.triangles.masks import (
    NOWHERE,
    Span,
    counted_from,
    nonzeros_of_mask,
)

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply


class Places(NamedTuple):
    """The places in matrices that are written or read.

    Attributes
    ----------
    is_whole
        Whether whole matrices of a stack are.
    span
        Otherwise the diagonals; None if there are no such places.
    """

    is_whole: bool
    span: Span | None


def places_written(node: Apply[Any]) -> Places | None:
    """Return the places that a node writes; None if they are not known."""
    return _places(node.inputs[0], node.op.idx_list, node.inputs[2:])


def places_read(node: Apply[Any]) -> Places | None:
    """Return the places that a node reads; None if they are not known."""
    return _places(node.inputs[0], node.op.idx_list, node.inputs[1:])


def _places(matrix: Any, idx_list: Any, given: list[Any]) -> Places | None:
    n_batch = matrix.type.ndim - 2
    if n_batch < 0 or any(isinstance(one, bool) or one is None for one in idx_list):
        return None
    # A mask takes as many axes as it has, and a new axis none.
    arrays = [given[one] for one in idx_list if not isinstance(one, slice)]
    if any(getattr(one.type, "dtype", None) == "bool" for one in arrays):
        return None
    if all(one == slice(None) for one in idx_list[n_batch:]):
        return Places(True, None)
    down, across = (
        idx_list[axis] if axis < len(idx_list) else slice(None) for axis in (n_batch, n_batch + 1)
    )
    if not isinstance(down, slice) and not isinstance(across, slice):
        span = _of_pair(given[down], given[across], matrix.type.shape[-2:])
    else:
        span = _of_ranges(down, across, given, matrix.type.shape[-2:])
    return None if span is None else Places(False, span)


def _of_pair(down: Any, across: Any, shape: tuple[int | None, ...]) -> Span | None:
    """Return the diagonals of the elements that a pair of indices selects."""
    if not isinstance(down, Constant) and same(down, across):
        # Equal negative numbers select other diagonals if there are more rows than columns.
        start = counted_from(down) if down.type.ndim else None
        is_square = shape[0] is not None and shape[0] == shape[1]
        return Span(0, 0) if is_square or (start is not None and start >= 0) else None
    mask, other = (_nonzero_of(one) for one in (down, across))
    if mask is not None and other is not None:
        if same(mask[0], other[0]) and mask[1:] == (0, 2) and other[1:] == (1, 2):
            return nonzeros_of_mask(mask[0])
        return None
    rows, columns = _array(down, shape[0]), _array(across, shape[1])
    if rows is None or columns is None:
        return None
    return _span(columns - rows)


def _span(ahead: Any) -> Span:
    return Span(int(ahead.min()), int(ahead.max())) if ahead.size else NOWHERE


def _nonzero_of(index: Any) -> tuple[Any, int, int] | None:
    """Return the mask whose nonzero places an index is, the axis, and the number of axes."""
    node = index.owner
    if node is None or not isinstance(node.op, Nonzero):
        return None
    [mask] = node.inputs
    return mask, node.outputs.index(index), len(node.outputs)


def _array(index: Any, length: int | None) -> Any:
    """Return places along an axis as nonnegative numbers; None if they are not known."""
    number = _constant(index)
    if number is None:
        return None
    places = np.asarray(number)
    if places.dtype.kind not in "iu":
        return None
    places = places.astype("int64")
    if places.size and places.min() < 0:
        # Counted from the end of an axis of unknown length.
        return None if length is None else np.where(places < 0, places + length, places)
    return places


def _constant(index: Any) -> Any:
    while index.owner is not None and isinstance(
        index.owner.op, ScalarFromTensor | TensorFromScalar
    ):
        [index] = index.owner.inputs
    return index.data if isinstance(index, Constant | ScalarConstant) else None


def _of_ranges(
    down: Any, across: Any, given: list[Any], shape: tuple[int | None, ...]
) -> Span | None:
    """Return the diagonals of a part of a row, of a column or of a block."""
    rows, columns = (
        _ends(one, given, length) for one, length in zip((down, across), shape, strict=True)
    )
    if rows is None or columns is None:
        return None
    if rows[0] > rows[1] or columns[0] > columns[1]:
        return NOWHERE
    return Span(columns[0] - rows[1], columns[1] - rows[0])


def _ends(index: Any, given: list[Any], length: int | None) -> tuple[int, int] | None:
    """Return the first and the last place along an axis."""
    if not isinstance(index, slice):
        places = _array(given[index], length)
        if places is None:
            return None
        return (int(places.min()), int(places.max())) if places.size else (1, 0)
    start, stop, step = (
        None if one is None else _slice_end(one, given)
        for one in (index.start, index.stop, index.step)
    )
    if "unknown" in (start, stop, step) or (step is not None and step < 1):
        return None
    if length is not None:
        inside = range(length)[slice(start, stop, step)]
        return (inside[0], inside[-1]) if inside else (1, 0)
    first = start or 0
    # If the axis is shorter, less is written.
    return (first, stop - 1) if first >= 0 and stop is not None and stop >= 0 else None


def _slice_end(at: Any, given: list[Any]) -> Any:
    number = _constant(given[at]) if isinstance(at, int) else _constant(at)
    return "unknown" if number is None else int(number)
