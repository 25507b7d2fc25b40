"""Factors and terms as PyTensor's canonizers collect them, and their distribution over sums."""

from __future__ import annotations

import itertools
from typing import Any

from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.rewriting import math
from pytensor.tensor.variable import TensorConstant

_MAIN, _INVERSE, _RECIPROCAL, _DIMSHUFFLE, _OTHER = range(5)

# By the address of the canonizer: itself, its three ops, and by the address of an op, that and what
# it is to the canonizer.
_Kinds = dict[int, tuple[Any, int]]
_kinds: dict[int, tuple[Any, Any, Any, Any, _Kinds]] = {}
_MANY_CANONIZERS = 64
_MANY_OPS = 4096


def _kinds_of(canonizer: Any) -> _Kinds:
    found = _kinds.get(id(canonizer))
    main, inverse, reciprocal = canonizer.main, canonizer.inverse, canonizer.reciprocal
    if (
        found is not None
        and found[0] is canonizer
        and found[1] is main
        and found[2] is inverse
        and found[3] is reciprocal
        and len(found[4]) < _MANY_OPS
    ):
        return found[4]
    if len(_kinds) >= _MANY_CANONIZERS:
        _kinds.clear()
    kinds: _Kinds = {}
    _kinds[id(canonizer)] = canonizer, main, inverse, reciprocal, kinds
    return kinds


def _kind(canonizer: Any, op: Any) -> int:
    if op is canonizer.main or op == canonizer.main:
        return _MAIN
    if op is canonizer.inverse or op == canonizer.inverse:
        return _INVERSE
    if op is canonizer.reciprocal or op == canonizer.reciprocal:
        return _RECIPROCAL
    return _DIMSHUFFLE if isinstance(op, DimShuffle) else _OTHER


def get_num_denum(self: Any, inp: Any) -> tuple[list[Any], list[Any]]:
    """Do as `AlgebraicCanonizer.get_num_denum`: each op is compared with the three once."""
    kinds = _kinds_of(self)
    num: list[Any] = []
    denum: list[Any] = []
    stack = [(inp, False)]
    while stack:
        v, inverted = stack.pop()
        apply = v.owner
        if apply is None:
            (denum if inverted else num).append(v)
            continue
        op = apply.op
        known = kinds.get(id(op))
        if known is None:
            known = kinds[id(op)] = op, _kind(self, op)
        kind = known[1]
        if kind == _OTHER:
            (denum if inverted else num).append(v)
        elif kind == _MAIN:
            stack.extend([(i, inverted) for i in reversed(apply.inputs)])
        elif kind == _INVERSE:
            x, y = apply.inputs
            stack.append((y, not inverted))
            stack.append((x, inverted))
        elif kind == _RECIPROCAL:
            stack.append((apply.inputs[0], not inverted))
        elif op.is_left_expand_dims or op.new_order == tuple(range(apply.inputs[0].type.ndim)):
            stack.append((apply.inputs[0], inverted))
        else:
            (denum if inverted else num).append(v)
    return num, denum


class _Pair:
    """A product in a sum, as factors over and under its line, and what may be simplified in it."""

    __slots__ = ("has_more", "over", "under")

    def __init__(self, num: list[Any], denum: list[Any]) -> None:
        self.over = set(num)
        self.under = set(denum)
        # Constants are put together; one over the other is cancelled; an absolute value under the
        # line may be that of a factor over it; and where nothing is over the line, a one is.
        self.has_more = (
            not num
            or not self.over.isdisjoint(self.under)
            or any(isinstance(v, TensorConstant) for v in num)
            or any(isinstance(v, TensorConstant) or _may_be_absolute(v) for v in denum)
        )


def _may_be_absolute(variable: Any) -> bool:
    owner = variable.owner
    return owner is not None and owner.op == math.pt_abs


def _gains_nothing(pair: _Pair, num: list[Any], denum: list[Any]) -> bool:
    """Whether factors put to those of a pair just stay there."""
    return (
        not pair.has_more
        and not any(isinstance(v, TensorConstant) or v in pair.under for v in num)
        and not any(
            isinstance(v, TensorConstant) or v in pair.over or _may_be_absolute(v) for v in denum
        )
    )


def attempt_distribution(
    factor: Any, num: list[Any], denum: list[Any], out_type: Any
) -> tuple[bool, Any, list[Any], list[Any]]:
    """Do as `attempt_distribution`.

    To put a factor into each term of a sum costs an operation for each term in which nothing is
    simplified. Which these are is seen without simplifying; the others are simplified as PyTensor
    does it, and counted.
    """
    mul, add = math.local_mul_canonizer, math.local_add_canonizer
    pos_terms, neg_terms = add.get_num_denum(factor)
    if len(pos_terms) == 1 and not neg_terms:
        return False, factor, num, denum
    if not num and not denum:
        return False, factor, num, denum
    pos_pairs = list(map(mul.get_num_denum, pos_terms))
    neg_pairs = list(map(mul.get_num_denum, neg_terms))
    pairs: list[_Pair] | None = None
    change = False
    for factors, is_over in ((num, True), (denum, False)):
        for v in list(factors):
            put = ([v], []) if is_over else ([], [v])
            if pairs is None:
                pairs = [_Pair(n, d) for n, d in itertools.chain(pos_pairs, neg_pairs)]
            if _must_fail(pairs, *put):
                continue
            success, pos_pairs, neg_pairs = math.distribute_greedy(
                pos_pairs, neg_pairs, *put, out_type
            )
            if success:
                pairs = None
                change = True
                factors.remove(v)
    if not change:
        return change, factor, num, denum
    return (
        change,
        add.merge_num_denum(
            list(itertools.starmap(mul.merge_num_denum, pos_pairs)),
            list(itertools.starmap(mul.merge_num_denum, neg_pairs)),
        ),
        num,
        denum,
    )


def _must_fail(pairs: list[_Pair], num: list[Any], denum: list[Any]) -> bool:
    """Whether a factor gains nothing in any of the pairs, so that putting it into them is no gain.

    What it saves where it was, it costs in each.
    """
    simplifiers = math.local_mul_canonizer.external_simplifiers
    if len(simplifiers) != 1 or simplifiers[0][1] is not math.check_for_x_over_absX:
        return False
    return all(_gains_nothing(pair, num, denum) for pair in pairs)
