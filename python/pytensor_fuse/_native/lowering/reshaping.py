"""Reshaped views: the map from an index of the view to an index of the array.

Unchanged axes, and axes of length 1, are kept apart from those that are merged or split, so that
loops over both arrays can fuse. Indices along split axes combine by multiplication and addition;
the index along a merged axis is decomposed by division.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from pytensor_fuse._native.lowering.tensors import Tensor, stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Context, Index, Value


class _Group(NamedTuple):
    """Axes of an array, and the axes of its view that replace them."""

    given: list[int]
    made: list[int]


class Product(NamedTuple):
    """A product of lengths: a number, and the multiplicity of each unknown length."""

    number: int
    lengths: Counter[Value]


def product(context: Context, lengths: Sequence[Value]) -> Product:
    """Return a product of lengths in canonical form."""
    number, others = 1, Counter[int]()
    for length in lengths:
        known = context.builder.number(length)
        if known is None:
            others[length] += 1
        else:
            number *= int(known)
    return Product(number, others)


def reshaped(context: Context, given: Tensor, lengths: Sequence[Value]) -> Tensor:
    """Return the view of an array with other lengths and the same number of elements."""
    lengths = [context.length(length) for length in lengths]
    old = [context.length(length) for length in given.lengths]
    if lengths == old:
        return Tensor(given.dtype, lengths, given.at, given.buffer, layout=given.layout)
    groups = _groups(context, old, lengths)
    if given.buffer is None and any(len(group.given) > 1 for group in groups):
        # The divisions of a merged index should only feed loads, not recomputed elements.
        given = stored(context.builder, context.copied(given))
    return _view(context, given, old, lengths, groups)


def raveled(context: Context, given: Tensor) -> Tensor:
    """Return the view of an array as a vector."""
    if given.ndim == 1:
        return given
    lengths = [context.length(length) for length in given.lengths]
    return reshaped(context, given, [context.size(lengths)])


def _view(
    context: Context,
    given: Tensor,
    old: Sequence[Value],
    lengths: Sequence[Value],
    groups: Sequence[_Group],
) -> Tensor:
    builder = context.builder
    zero = builder.index(0)

    def at(index: Index) -> Value:
        place = [zero] * len(old)
        for group in groups:
            if not group.given:
                continue
            flat = zero
            for axis in group.made:
                flat = builder.op("add", builder.op("mul", flat, lengths[axis]), index[axis])
            for axis in reversed(group.given[1:]):
                place[axis] = builder.op("mod", flat, old[axis])
                flat = builder.op("floordiv", flat, old[axis])
            place[group.given[0]] = flat
        return given.at(tuple(place))

    return Tensor(given.dtype, lengths, at)


def _groups(context: Context, old: Sequence[Value], new: Sequence[Value]) -> list[_Group]:
    """Return the groups of axes of an array and its view that correspond, without length 1."""
    one = context.builder.index(1)
    given = [axis for axis, length in enumerate(old) if length != one]
    made = [axis for axis, length in enumerate(new) if length != one]
    last: list[_Group] = []
    while given and made and old[given[-1]] == new[made[-1]]:
        last.append(_Group([given.pop()], [made.pop()]))
    groups = []
    while given or made:
        group = _first_group(context, old, new, given, made)
        groups.append(group)
        given, made = given[len(group.given) :], made[len(group.made) :]
    return [*groups, *reversed(last)]


def _first_group(
    context: Context, old: Sequence[Value], new: Sequence[Value], given: list[int], made: list[int]
) -> _Group:
    """Return the shortest leading groups of axes whose products of lengths agree."""
    for n_given in range(1, len(given) + 1):
        of_given = product(context, [old[axis] for axis in given[:n_given]])
        for n_made in range(1, len(made) + 1):
            if product(context, [new[axis] for axis in made[:n_made]]) == of_given:
                return _Group(given[:n_given], made[:n_made])
    return _Group(given, made)
