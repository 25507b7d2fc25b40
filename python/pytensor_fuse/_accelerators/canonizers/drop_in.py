"""Whether PyTensor's canonizers and distributors of factors leave a node as it is.

Both collect the factors (or terms) of a node, simplify them, and compare; nine times of ten they
are what they were. That is seen without simplifying where no factor stands on both sides of the
line and there is at most one constant, which is where the canonizer itself would put it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.rewriting import math
from pytensor.tensor.variable import TensorConstant

from pytensor_fuse._accelerators.sum_factors.drop_in import (
    INVERSE,
    MAIN,
    OTHER,
    RECIPROCAL,
    Kinds,
    has_own_factors,
    kind_of,
    kinds_of,
    num_denum,
)
from pytensor_fuse._pytensor.ops.underlying_constants import hides_no_constant
from pytensor_fuse._pytensor.patching.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch

_stock_transform: Any = math.AlgebraicCanonizer.transform
_stock_greedy: Any = math.local_greedy_distributor.fn
_stock_methods: Final = {
    name: vars(math.AlgebraicCanonizer)[name]
    for name in ("simplify", "simplify_constants", "simplify_factors")
}

# The ops of a canonizer. What is neither of these nor a DimShuffle is a factor.
_OWN: Final = frozenset({MAIN, INVERSE, RECIPROCAL})


def transform(self: Any, fgraph: Any, node: Any, enforce_tracks: bool = True) -> Any:
    """Do as `AlgebraicCanonizer.transform`, which is asked only if it may have something to do."""
    if _is_plain(self) and _must_decline(self, fgraph, node):
        return False
    return _stock_transform(self, fgraph, node, enforce_tracks=enforce_tracks)


def _is_plain(canonizer: Any) -> bool:
    """Whether a canonizer works as its class does, and multiplies or adds."""
    own = vars(canonizer)
    return (
        type(canonizer) is math.AlgebraicCanonizer
        and has_own_factors(canonizer)
        and not any(name in own for name in _stock_methods)
        and all(getattr(math.AlgebraicCanonizer, n) is f for n, f in _stock_methods.items())
    )


def _must_decline(canonizer: Any, fgraph: Any, node: Any) -> bool:
    kinds = kinds_of(canonizer)
    op = node.op
    kind = kind_of(canonizer, kinds, op)
    if kind not in _OWN:
        return True
    (out,) = node.outputs
    clients = fgraph.clients
    out_clients = clients.get(out)
    if not out_clients:
        return True
    for client, _ in out_clients:
        client_op = client.op
        while isinstance(client_op, DimShuffle):
            next_clients = clients[client.outputs[0]]
            if len(next_clients) > 1:
                break
            client = next_clients[0][0]
            client_op = client.op
        if kind_of(canonizer, kinds, client_op) in _OWN:
            return True

    absorbing = canonizer.absorbing_element
    if absorbing is not None and kind == MAIN:
        for i in node.inputs:
            if isinstance(i, TensorConstant):
                value = i.unique_value
                if value is not None and value == absorbing:
                    return False
            elif (
                i.owner is not None
                and kind_of(canonizer, kinds, i.owner.op) not in _OWN
                and not hides_no_constant(i)
            ):
                return False

    num, denum = num_denum(canonizer, kinds, out)
    if denum:
        if num and not set(num).isdisjoint(denum):
            return False
    elif len(node.inputs) < len(num):
        # There is a product in a product.
        return False
    if (
        canonizer.use_reciprocal
        and kind == RECIPROCAL
        and not num
        and (inner := node.inputs[0].owner)
        and len(inner.inputs) < len(denum)
    ):
        return False
    if not num and not canonizer.use_reciprocal:
        # It gets a one.
        return False
    return _leaves_constants(canonizer, num, denum, out.type.dtype) and _leaves_others(
        canonizer, denum
    )


def _leaves_constants(canonizer: Any, num: list[Any], denum: list[Any], dtype: str) -> bool:
    """Whether there is no constant, or one, of the dtype of the result, as the first factor."""
    constant: Any = None
    for v in num:
        if isinstance(v, TensorConstant) and v.unique_value is not None:
            if constant is not None or v is not num[0]:
                return False
            constant = v
    for v in denum:
        if isinstance(v, TensorConstant) and v.unique_value is not None:
            return False
    if constant is None:
        return True
    if canonizer.calculate is math.mul_calculate:
        neutral = 1
    elif canonizer.calculate is math.add_calculate:
        neutral = 0
    else:
        return False
    # With zeros there may be something else to do; what is no number is not equal to itself.
    return (
        dtype in _FLOATS
        and constant.type.dtype == dtype
        and bool((value := constant.unique_value) != 0)
        and bool(value != neutral)
        and bool(value == value)
    )


_FLOATS: Final = ("float32", "float64")


def _leaves_others(canonizer: Any, denum: list[Any]) -> bool:
    """Whether the one rule there may be is that of ``x / abs(x)``, and nothing to apply it to."""
    simplifiers = canonizer.external_simplifiers
    if not simplifiers:
        return True
    if len(simplifiers) > 1 or simplifiers[0][1] is not math.check_for_x_over_absX:
        return False
    return not any(v.owner is not None and _may_be_absolute(v.owner.op) for v in denum)


def _may_be_absolute(op: Any) -> bool:
    return isinstance(op, Elemwise) and (
        type(op) is not Elemwise or isinstance(op.scalar_op, ps.Abs)
    )


def distribute(fgraph: Any, node: Any) -> Any:
    """Do as `local_greedy_distributor`, which is asked only if a factor is a sum."""
    mul, add = math.local_mul_canonizer, math.local_add_canonizer
    if has_own_factors(mul) and has_own_factors(add):
        (out,) = node.outputs
        num, denum = num_denum(mul, kinds_of(mul), out)
        kinds: Kinds = kinds_of(add)
        if not any(
            v.owner is not None and kind_of(add, kinds, v.owner.op) != OTHER
            for factors in (num, denum)
            for v in factors
        ):
            return False
    return _stock_greedy(fgraph, node)


def patch() -> Patch:
    """Return the patch."""
    return Together(
        DropIn(math.AlgebraicCanonizer, "transform", transform),
        DropIn(math.local_greedy_distributor, "fn", distribute),
    )
