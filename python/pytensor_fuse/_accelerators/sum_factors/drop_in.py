"""Factors and terms as PyTensor's canonizers collect them, and their distribution over sums."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.rewriting import math
from pytensor.tensor.variable import TensorConstant

from pytensor_fuse._pytensor.compat.packages import does_as
from pytensor_fuse._pytensor.patching.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch

_stock_factors: Any = math.AlgebraicCanonizer.get_num_denum

MAIN, INVERSE, RECIPROCAL, _DIMSHUFFLE, OTHER = range(5)

# By the address of the canonizer: itself, its three ops, and by the address of an op, that and what
# it is to the canonizer.
Kinds = dict[int, tuple[Any, int]]
_kinds: dict[int, tuple[Any, Any, Any, Any, Kinds]] = {}
_MANY_CANONIZERS = 64
_MANY_OPS = 4096


def kinds_of(canonizer: Any) -> Kinds:
    """Return the cached roles of ops for a canonizer."""
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
    kinds: Kinds = {}
    _kinds[id(canonizer)] = canonizer, main, inverse, reciprocal, kinds
    return kinds


def _kind(canonizer: Any, op: Any) -> int:
    if op is canonizer.main or op == canonizer.main:
        return MAIN
    if op is canonizer.inverse or op == canonizer.inverse:
        return INVERSE
    if op is canonizer.reciprocal or op == canonizer.reciprocal:
        return RECIPROCAL
    return _DIMSHUFFLE if isinstance(op, DimShuffle) else OTHER


def kind_of(canonizer: Any, kinds: Kinds, op: Any) -> int:
    """Return the role of an op for a canonizer with the cached roles ``kinds``."""
    known = kinds.get(id(op))
    if known is None:
        known = kinds[id(op)] = op, _kind(canonizer, op)
    return known[1]


def get_num_denum(self: Any, inp: Any) -> tuple[list[Any], list[Any]]:
    """Do as `AlgebraicCanonizer.get_num_denum`: each op is compared with the three once."""
    return num_denum(self, kinds_of(self), inp)


def num_denum(self: Any, kinds: Kinds, inp: Any) -> tuple[list[Any], list[Any]]:
    """Return the factors over and under the line."""
    if inp.owner is None:
        return [inp], []
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
        kind = kind_of(self, kinds, op) if known is None else known[1]
        if kind == OTHER:
            (denum if inverted else num).append(v)
        elif kind == MAIN:
            stack.extend([(i, inverted) for i in reversed(apply.inputs)])
        elif kind == INVERSE:
            x, y = apply.inputs
            stack.append((y, not inverted))
            stack.append((x, inverted))
        elif kind == RECIPROCAL:
            stack.append((apply.inputs[0], not inverted))
        elif op.is_left_expand_dims or op.new_order == tuple(range(apply.inputs[0].type.ndim)):
            stack.append((apply.inputs[0], inverted))
        else:
            (denum if inverted else num).append(v)
    return num, denum


class _Terms:
    """Products in a sum, as factors over and under their lines, and what may be saved in them.

    Attributes
    ----------
    is_open
        Whether it is not known what more factors would save.
    most
        The number of operations that can be saved in all without more factors: that of constants,
        which are dropped where they are ones.
    over, under
        All factors.
    """

    __slots__ = ("is_open", "most", "n_terms", "over", "under")

    def __init__(self, pairs: list[tuple[list[Any], list[Any]]], dtype: str) -> None:
        self.is_open = False
        self.n_terms = len(pairs)
        self.most = 0
        self.over: set[Any] = set()
        self.under: set[Any] = set()
        for num, denum in pairs:
            # One over the other is cancelled; an absolute value under the line may be that of a
            # factor over it; and where nothing is over the line, a one is.
            if not num or (
                denum
                and (
                    any(isinstance(v, TensorConstant) or _may_be_absolute(v) for v in denum)
                    or not set(num).isdisjoint(denum)
                )
            ):
                self.is_open = True
                return
            n_constants = 0
            for v in num:
                if isinstance(v, TensorConstant):
                    n_constants += 1
                    # Several are put together, and nothing is left beside a zero.
                    if n_constants > 1 or _may_be_zero(v, dtype):
                        self.is_open = True
                        return
            self.most += n_constants
            self.over.update(num)
            self.under.update(denum)

    def must_lose(self, v: Any, is_over: bool) -> bool:
        """Whether it saves nothing to put a factor into each term.

        What it saves where it was, it costs in each term in which it meets nothing.
        """
        if self.is_open or isinstance(v, TensorConstant):
            return False
        if is_over:
            return v not in self.under and 1 - self.n_terms + self.most <= 0
        return (
            v not in self.over
            and not _may_be_absolute(v)
            and _COST_OF_DIVISION * (1 - self.n_terms) + self.most <= 0
        )


def _may_be_zero(constant: Any, dtype: str) -> bool:
    """Whether a constant is zero, or may be in another dtype."""
    value = constant.unique_value
    if value is None:
        return False
    own = constant.type.dtype
    return bool(value == 0) or (own != dtype and not np.can_cast(own, dtype))


# As `distribute_greedy` has it.
_COST_OF_DIVISION = 1.5


def _may_be_absolute(variable: Any) -> bool:
    owner = variable.owner
    return owner is not None and owner.op == math.pt_abs


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
    if has_own_factors(mul):
        kinds = kinds_of(mul)
        pos_pairs = [num_denum(mul, kinds, v) for v in pos_terms]
        neg_pairs = [num_denum(mul, kinds, v) for v in neg_terms]
    else:
        pos_pairs = list(map(mul.get_num_denum, pos_terms))
        neg_pairs = list(map(mul.get_num_denum, neg_terms))
    simplifiers = mul.external_simplifiers
    is_known = len(simplifiers) == 1 and simplifiers[0][1] is math.check_for_x_over_absX
    terms: _Terms | None = None
    change = False
    for factors, is_over in ((num, True), (denum, False)):
        for v in list(factors):
            if is_known:
                if terms is None:
                    terms = _Terms([*pos_pairs, *neg_pairs], out_type.dtype)
                if terms.must_lose(v, is_over):
                    continue
            put = ([v], []) if is_over else ([], [v])
            success, pos_pairs, neg_pairs = math.distribute_greedy(
                pos_pairs, neg_pairs, *put, out_type
            )
            if success:
                terms = None
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


def has_own_factors(canonizer: Any) -> bool:
    """Whether a canonizer finds its factors as `get_num_denum` here does."""
    if type(canonizer) is not math.AlgebraicCanonizer or "get_num_denum" in vars(canonizer):
        return False
    return does_as(math.AlgebraicCanonizer.get_num_denum, _stock_factors)


def patch() -> Patch:
    """Return the patch."""
    return Together(
        DropIn(math.AlgebraicCanonizer, "get_num_denum", get_num_denum),
        DropIn(math, "attempt_distribution", attempt_distribution),
    )
