"""Prefilters: the nodes on which a rewriter of PyTensor must fail, by the sources of the inputs.

Most tries fail, and most failures are predictable: a rewriter for products of switches needs an
input that a switch computes. The table has a set of *sources* for each rewriter; at least one of
them must be a source of the node's inputs. The condition is necessary, never sufficient: a rewriter
that is tried on a node still decides for itself.

Each entry was derived from the code of a function. A rewriter with other code is tried on all
nodes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from pytensor.graph.basic import Constant
from pytensor.scalar import basic as ps
from pytensor.scalar.math import Erfc, Sigmoid, Softplus
from pytensor.tensor.basic import Alloc, Join, MakeVector
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import AdvancedIncSubtensor, IncSubtensor, Subtensor

from pytensor_fuse._pytensor.compat.checks import Does, find, mismatches, plain_function
from pytensor_fuse._pytensor.compat.packages import is_pytensors
from pytensor_fuse._pytensor.patching.drop_ins import DropIn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytensor_fuse._pytensor.patching.patches import Patch

# Sources, each a bit.
(
    CONSTANT,
    ONLY_CONSTANTS,
    ONE_INPUT,
    ALLOC,
    SWITCH,
    SECOND,
    NEG,
    ABS,
    SQR,
    POW,
    EXP,
    EXPM1,
    SOFTPLUS,
    SIGMOID,
    ERFC,
    MUL,
    INCREMENT,
    REDUCTION,
    JOIN,
    VECTOR,
    SHAPE,
) = (1 << n for n in range(21))
# Unknown ops may be of any source.
_ANYTHING: Final = (1 << 21) - 1

# The wants of a rewriter: any of these sources, no source in particular, or one of no node.
Wants = int
WHATEVER: Final[Wants] = 0
NOTHING: Final[Wants] = 1 << 21

_SCALAR_SOURCES: Final[tuple[tuple[type, int], ...]] = (
    (ps.Switch, SWITCH),
    (ps.Second, SECOND),
    (ps.Neg, NEG),
    (ps.Abs, ABS),
    (ps.Sqr, SQR),
    (ps.Pow, POW),
    (ps.Exp, EXP),
    (ps.Expm1, EXPM1),
    (Softplus, SOFTPLUS),
    (Sigmoid, SIGMOID),
    (Erfc, ERFC),
    (ps.Mul, MUL),
)
_SOURCES: Final[tuple[tuple[type, int], ...]] = (
    (Alloc, ALLOC),
    (IncSubtensor, INCREMENT),
    (AdvancedIncSubtensor, INCREMENT),
    (CAReduce, REDUCTION),
    (Join, JOIN),
    (MakeVector, VECTOR),
    (Shape, SHAPE),
    (Shape_i, SHAPE),
    # These may be of shapes.
    (Subtensor, SHAPE),
)

# Of classes of ops, and of classes of the scalar ops of Elemwise.
_known_sources: dict[type, int] = {}
_MANY: Final = 4096


def _source(op: Any) -> int:
    class_ = type(op.scalar_op) if type(op) is Elemwise else type(op)
    if (isinstance(op, Elemwise) and type(op) is not Elemwise) or not is_pytensors(class_):
        found = _ANYTHING
    else:
        found = 0
        # An abstract class, asked for a subclass, asks all of its hundreds of subclasses in turn.
        bases = class_.__mro__
        for base, source in (*_SCALAR_SOURCES, *_SOURCES):
            if base in bases:
                found |= source
    if len(_known_sources) < _MANY:
        _known_sources[class_] = found
    return found


def sources(inputs: Iterable[Any]) -> int:
    """Return the sources of the inputs of a node.

    Notes
    -----
    O(number of inputs), two look-ups for each.
    """
    found = 0
    n_constants = 0
    count = 0
    known = _known_sources
    for i in inputs:
        count += 1
        node = i.owner
        if node is None:
            if isinstance(i, Constant):
                n_constants += 1
        else:
            op = node.op
            class_: Any = type(op)
            source = known.get(type(op.scalar_op) if class_ is Elemwise else class_)
            found |= _source(op) if source is None else source
    if n_constants:
        found |= CONSTANT
    if n_constants == count:
        found |= ONLY_CONSTANTS
    if count == 1:
        found |= ONE_INPUT
    return found


def _elemwise_alone(scalar_classes: tuple[type, ...], wants: Wants) -> Callable[[Any], Wants]:
    """Return wants for Elemwise of these scalar ops; other Elemwise are not tried."""

    def of_op(op: Any) -> Wants:
        if type(op) is not Elemwise or not is_pytensors(type(op.scalar_op)):
            return WHATEVER
        return wants if isinstance(op.scalar_op, scalar_classes) else NOTHING

    return of_op


def _always(wants: Wants) -> Callable[[Any], Wants]:
    def of_op(op: Any) -> Wants:
        return wants

    return of_op


_compares_shapes = _elemwise_alone((ps.EQ,), SHAPE | JOIN | VECTOR)
_compares = _elemwise_alone(
    (ps.LT, ps.GT, ps.LE, ps.GE, ps.ScalarMinimum, ps.ScalarMaximum), WHATEVER
)
_logic = _elemwise_alone((ps.EQ, ps.NEQ, ps.XOR, ps.AND, ps.OR), WHATEVER)
_neutral = _elemwise_alone((ps.Mul, ps.Add, ps.Identity), ONE_INPUT)


def _comparison(op: Any) -> Wants:
    return _compares(op) if _compares(op) != NOTHING else _compares_shapes(op)


def _useless(op: Any) -> Wants:
    return _logic(op) if _logic(op) != NOTHING else _neutral(op)


def _squares(op: Any) -> Wants:
    axes: Any = op.axis
    return SQR if type(op) is not Sum or axes == (1, 2) else NOTHING


def _folding(op: Any) -> Wants:
    # Others say themselves whether they are folded, and may note that they were asked.
    return ONLY_CONSTANTS if is_pytensors(type(op)) else WHATEVER


def _seconds(op: Any) -> Wants:
    return NOTHING if isinstance(op, Elemwise) and isinstance(op.scalar_op, ps.Second) else SECOND


_BASIC: Final = "pytensor.tensor.rewriting.basic"
_MATH: Final = "pytensor.tensor.rewriting.math"
_ELEMWISE: Final = "pytensor.tensor.rewriting.elemwise"
_SUBTENSOR: Final = "pytensor.tensor.rewriting.subtensor"

# The wants of each rewriter for a node of an op.
ENTRIES: Final[tuple[tuple[Does, Callable[[Any], Wants]], ...]] = (
    (Does(f"{_BASIC}:local_useless_elemwise.fn"), _useless),
    (Does(f"{_MATH}:local_useless_elemwise_comparison.fn"), _comparison),
    (Does(f"{_BASIC}:local_merge_switch_same_cond.fn"), _always(SWITCH)),
    (Does(f"{_MATH}:local_mul_switch_sink.fn"), _always(SWITCH)),
    (Does(f"{_ELEMWISE}:local_upcast_elemwise_constant_inputs.fn"), _always(CONSTANT)),
    (Does(f"{_SUBTENSOR}:local_add_of_sparse_write.fn"), _always(INCREMENT)),
    (Does(f"{_SUBTENSOR}:local_IncSubtensor_serialize.fn"), _always(INCREMENT)),
    (Does(f"{_BASIC}:local_elemwise_alloc.fn"), _always(ALLOC)),
    (Does(f"{_BASIC}:local_alloc_unary.fn"), _always(ALLOC)),
    (Does(f"{_BASIC}:local_dimshuffle_alloc.fn"), _always(ALLOC)),
    (Does(f"{_MATH}:local_careduce_of_alloc.fn"), _always(ALLOC)),
    (Does(f"{_MATH}:local_expm1.fn"), _always(EXP)),
    (Does(f"{_MATH}:local_mul_exp_to_exp_add.fn"), _always(EXP)),
    (Does(f"{_MATH}:local_exp_log.fn"), _always(EXP | EXPM1 | SOFTPLUS)),
    (Does(f"{_MATH}:local_mul_pow_to_pow_add.fn"), _always(POW)),
    (Does(f"{_MATH}:local_abs_merge.fn"), _always(ABS)),
    (Does(f"{_MATH}:local_add_neg_to_sub.fn"), _always(NEG)),
    (Does(f"{_MATH}:local_sub_neg_to_add.fn"), _always(NEG)),
    (Does(f"{_MATH}:local_sigm_times_exp.fn"), _always(SIGMOID | MUL | NEG)),
    (Does(f"{_MATH}:local_mul_specialize.fn"), _always(CONSTANT | NEG)),
    (Does(f"{_MATH}:local_pow_canonicalize.fn"), _always(CONSTANT)),
    (Does(f"{_MATH}:local_grad_log_erfc_neg.fn"), _always(ERFC)),
    (Does(f"{_BASIC}:local_sum_make_vector.fn"), _always(VECTOR)),
    (Does(f"{_MATH}:local_reduce_join.fn"), _always(JOIN)),
    (Does(f"{_MATH}:local_reduce_chain.fn"), _always(REDUCTION)),
    (Does(f"{_MATH}:local_sumsqr2dot.fn"), _squares),
    (Does(f"{_BASIC}:local_second_sink.fn"), _seconds),
    (Does(f"{_BASIC}:constant_folding.fn"), _folding),
)

# Classes of ops for which the wants of rewriters differ.
TOLD_APART: Final = (Elemwise, Sum)

# The known rewriters by their addresses; empty while this is off.
Table = dict[int, tuple[Any, Any, "Callable[[Any], Wants]"]]
in_use: Table = {}


def table() -> Table:
    """Return the rewriters whose code is known, with their functions."""
    found: Table = {}
    for fact, wants in ENTRIES:
        if not mismatches([fact]):
            rewriter: Any = find(fact.place.removesuffix(".fn"))
            found[id(rewriter)] = rewriter, plain_function(rewriter.fn), wants
    return found


def wants_by(rewriter: Any) -> Callable[[Any], Wants] | None:
    """Return the wants of a node rewriter as a function of the op; None if they are unknown."""
    known = in_use.get(id(rewriter))
    if known is None:
        return None
    try:
        is_known = plain_function(rewriter.fn) is known[1]
    except TypeError:  # Somebody has put something else there.
        return None
    return known[2] if is_known else None


def patch() -> Patch:
    """Return the patch."""
    return DropIn(sys.modules[__name__], "in_use", table())
