"""What is unknown of a variable because nothing is known of what it is computed from.

Rewrites ask of each transpose whether what it transposes is symmetric, and so whether that is
diagonal, positive definite, and so on, and so of all that it is computed from: six questions for
each variable, each of which calls a rule, and nearly all of which have the answer that nothing is
known. Where that is so can be told at once: an Elemwise or a DimShuffle of inputs of which nothing
is known gives something of which nothing is known, but for what is the same along both axes. So do
parts of what nothing is known of; and of what ops give that no rule is about, nothing is known
whatever they read.

The answers are noted where PyTensor would have noted them; what is left is for PyTensor to ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.assumptions import core
from pytensor.assumptions.core import AssumptionFeature, FactState
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import IncSubtensor, Subtensor
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorConstant

from pytensor_fuse._accelerators.assumptions import drop_in as quick_assumptions
from pytensor_fuse._pytensor.compat.packages import does_as
from pytensor_fuse._pytensor.patching.drop_ins import DropIn

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch

_UNKNOWN = FactState.UNKNOWN
_TRUE = FactState.TRUE
_FALSE = FactState.FALSE
_CONFLICT = FactState.CONFLICT
_UNKNOWN_OR_FALSE = (_UNKNOWN, _FALSE)


def _rules(names: str) -> frozenset[str]:
    """Return full names of PyTensor's rules."""
    return frozenset(f"pytensor.assumptions.{name}" for name in names.split())


# Rules by which nothing follows from nothing, by the module and name of each; `known_sources`
# has what they were. That of symmetric Elemwise is looked at for each node.
_RULES: Final[dict[type, frozenset[str]]] = {
    Elemwise: _rules(
        "diagonal._elemwise positive_definite._elemwise symmetric._elemwise "
        "triangular._elemwise_lower triangular._elemwise_upper tridiagonal._elemwise"
    ),
    DimShuffle: _rules(
        "dimshuffle.dimshuffle_propagates_matrix_property diagonal._dimshuffle "
        "positive_definite._dimshuffle symmetric._dimshuffle triangular._lower_dimshuffle "
        "triangular._upper_dimshuffle tridiagonal._dimshuffle orthogonal._dimshuffle "
        "permutation._dimshuffle"
    ),
    Subtensor: _rules("subtensor.subtensor_propagates_matrix_property selection._subtensor"),
    IncSubtensor: _rules(
        "subtensor.incsubtensor_propagates_matrix_property diagonal._inc_subtensor"
    ),
    Reshape: _rules("shape.reshape_propagates_matrix_property"),
    # That asks those of the op on single matrices.
    Blockwise: _rules("blockwise._blockwise_delegate"),
}

# Rules that say of a number, and of a vector, that it is not what they look for.
_CONSTANT_RULES: Final = _rules(
    "diagonal._diagonal_from_constant tridiagonal._tridiagonal_from_constant "
    "permutation._permutation_from_constant selection._selection_from_constant"
)
# What gives for each input of which nothing is known something of which nothing is known, and
# which may pass on what is known not to hold.
_PASSING_ON: Final = frozenset({DimShuffle, IncSubtensor, Reshape})

_stock_get = AssumptionFeature.get
_stock_compute = AssumptionFeature._compute
_stock_infer = core.infer_assumption_for_node
_stock_drop = AssumptionFeature._drop_unknown_downstream
_METHODS: Final = frozenset({"get", "check", "_compute", "_drop_unknown_downstream"})

# What must be so of all that a node reads.
_NEVER: Final = 0
_NOTHING_KNOWN: Final = 1
_NOTHING_HOLDS: Final = 2
_WHATEVER: Final = 3


def _single_rules() -> list[Any]:
    return [*core.CONSTANT_INFER_REGISTRY.values(), *core.CLIENT_INFER_REGISTRY.values()]


class _Family:
    """Keys that are asked for each other, for as long as the rules are those that there were.

    Attributes
    ----------
    keys
        The keys in the order in which they are asked, the first for the others; none if rules
        are not known.
    key_set
        The same.
    """

    def __init__(self, key: Any, rules: Any) -> None:
        self.first = key
        self.rules = rules
        keys: dict[Any, None] = {}
        pending = [key]
        while pending:
            one = pending.pop()
            if one in keys:
                continue
            keys[one] = None
            stronger = [other for other, weaker in core.IMPLIES.items() if one in weaker]
            pending += [*stronger, *core.IMPLIES.get(one, ())][::-1]
        self._lists = [
            (found, found[:])
            for class_ in _RULES
            for one in keys
            if (found := core.ASSUMPTION_INFER_REGISTRY.get((one, class_))) is not None
        ]
        is_known = all(
            f"{rule.__module__}.{rule.__qualname__}" in known
            for class_, known in _RULES.items()
            for one in keys
            for rule in core.ASSUMPTION_INFER_REGISTRY.get((one, class_), ())
        )
        self.keys: tuple[Any, ...] = tuple(keys) if is_known else ()
        self.key_set = set(self.keys)
        self._asking = [one for one in keys if one in core.CLIENT_INFER_KEYS]
        self._of_constants = [
            core.CONSTANT_INFER_REGISTRY[one] for one in keys if one in core.CONSTANT_INFER_REGISTRY
        ]
        # Where a key is told by others, these are asked of a constant, too.
        self._knows_constants = all(
            f"{rule.__module__}.{rule.__qualname__}" in _CONSTANT_RULES
            for rule in self._of_constants
        ) and not any(
            weaker in core.CONSTANT_INFER_REGISTRY
            for one in keys
            if one not in core.CONSTANT_INFER_REGISTRY
            for weaker in core.IMPLIES.get(one, ())
        )
        self._single_rules = _single_rules()
        # By class of ops, which are kept: whether no client of it has a rule, and whether its
        # nodes have none.
        self._silent: dict[type, bool] = {}
        self._without_rules: dict[type, bool] = {}

    def still_is(self, rules: Any) -> bool:
        """Whether the rules are those that there were."""
        return (
            self.rules is rules
            and all(now == then for now, then in self._lists)
            and _single_rules() == self._single_rules
        )

    def hears_nothing(self, clients: Any) -> bool:
        """Whether no client has a rule of its own for what it reads."""
        silent = self._silent
        for client, _ in clients:
            op = client.op
            class_ = type(op.core_op if isinstance(op, Blockwise) else op)
            known = silent.get(class_)
            if known is None:
                known = silent[class_] = not any(
                    (key, base) in core.CLIENT_INFER_REGISTRY
                    for key in self._asking
                    for base in class_.__mro__
                )
            if not known:
                return False
        return True

    def wants_of_inputs(self, node: Any) -> int:
        """Return what must be so of all that a node reads for nothing to be known of what it gives.

        Either nothing is known of them, or nothing is known to hold of them; or no more is known
        of what it gives for that.
        """
        op = node.op
        class_ = type(op)
        if self._has_no_rules(class_):
            return _WHATEVER
        if class_ is Elemwise:
            return _NOTHING_HOLDS if _is_blank_elemwise(node) else _NEVER
        if class_ is DimShuffle:
            # There is no matrix to pass anything on of.
            return _NOTHING_HOLDS if op.input_ndim < 2 else _NOTHING_KNOWN
        if class_ is Blockwise:
            return _WHATEVER if self._has_no_rules(type(op.core_op)) else _NEVER
        if class_ in _RULES:
            return _NOTHING_KNOWN if class_ in _PASSING_ON else _NOTHING_HOLDS
        return _NEVER

    def _has_no_rules(self, class_: type) -> bool:
        known = self._without_rules.get(class_)
        if known is None:
            # A rule for another class is one more that there is; then there is another family.
            known = self._without_rules[class_] = not any(
                (key, base) in core.ASSUMPTION_INFER_REGISTRY
                for key in self.keys
                for base in class_.__mro__
            )
        return known

    def nothing_is_known_of(self, leaf: Any) -> bool:
        """Whether no rule says anything of a variable that nothing computes."""
        if isinstance(leaf, TensorConstant):
            return all(rule(leaf) is _UNKNOWN for rule in self._of_constants)
        return True

    def states_of_number(self, leaf: Any) -> list[Any] | None:
        """Return what is noted of a constant that is no matrix; None if that may be anything."""
        if not self._knows_constants:
            return None
        states = []
        for key in self.keys:
            rule = core.CONSTANT_INFER_REGISTRY.get(key)
            states.append(_UNKNOWN if rule is None else rule(leaf))
            if states[-1] not in _UNKNOWN_OR_FALSE:
                return None
        return states


_families: dict[int, _Family] = {}


def _family(key: Any) -> _Family:
    rules = quick_assumptions.current_rules()
    family = _families.get(id(key))
    if family is None or family.first is not key or not family.still_is(rules):
        if len(_families) > 64:
            _families.clear()
        family = _families[id(key)] = _Family(key, rules)
    return family


def _is_blank_elemwise(node: Any) -> bool:
    # What is the same along both axes is symmetric, whatever its values.
    if len(node.outputs[0].type.shape) < 2:
        return True
    for variable in node.inputs:
        type_ = variable.type
        if type(type_) is not TensorType:
            return False
        shape = type_.shape
        if shape and shape[-2:] != (1, 1):
            return True
    return False


def note_unknowns(feature: Any, var: Any, key: Any) -> None:
    """Note what is known of what ``var`` is computed from, and of itself.

    That is nothing, for most. Of the others PyTensor finds out, in its order.

    Notes
    -----
    O(nodes + edges) of what is not known yet, as `AssumptionFeature._compute`, which would note the
    same, if later, for whatever is noted here.
    """
    family = _family(key)
    keys = family.keys
    if not keys:
        return
    cache = feature.cache
    keys_of = feature._var_to_keys
    clients = feature.fgraph.clients
    order, is_complete = quick_assumptions.order_of(var, key, cache)
    if not is_complete:
        return
    # Those of which nothing is known, and those of which nothing is known to hold.
    blank: set[Any] = set()
    dull: set[Any] = set()
    numbers: set[Any] = set()

    def note(v: Any, states: list[Any]) -> None:
        for one, state in zip(keys, states, strict=True):
            cache[v, one] = state
        keys_of.setdefault(v, set()).update(family.key_set)

    def are_as_wanted(inputs: list[Any], wants: int) -> bool:
        for i in inputs:
            if i in blank:
                continue
            if i not in dull and i not in numbers:
                # Known from before.
                noted = keys_of.get(i)
                if noted is None or not noted >= family.key_set:
                    return False
                states = [cache.get((i, one)) for one in keys]
                if states == unknown:
                    blank.add(i)
                    continue
                if any(state not in _UNKNOWN_OR_FALSE for state in states):
                    if wants != _WHATEVER or _CONFLICT in states:
                        return False
                    continue
                dull.add(i)
            if wants == _NOTHING_KNOWN:
                return False
        return True

    def noted(v: Any) -> bool:
        """Note that nothing is known of a variable, if that is so."""
        known = keys_of.get(v)
        if known is not None and not known.isdisjoint(family.key_set):
            return False
        owner = v.owner
        if owner is None:
            if not family.nothing_is_known_of(v):
                return False
        else:
            if len(owner.outputs) > 1:
                return False
            wants = family.wants_of_inputs(owner)
            if wants == _NEVER or not are_as_wanted(owner.inputs, wants):
                return False
        if not family.hears_nothing(clients.get(v, ())):
            return False
        if numbers and owner is not None:
            of_numbers = {i: family.states_of_number(i) for i in owner.inputs if i in numbers}
            for states in of_numbers.values():
                if states is None:
                    return False
            for i, states in of_numbers.items():
                note(i, states or [])
            numbers.difference_update(of_numbers)
            dull.update(of_numbers)
        blank.add(v)
        note(v, unknown)
        return True

    unknown = [_UNKNOWN] * len(keys)
    for v in order:
        if (
            v.owner is None
            and isinstance(v, TensorConstant)
            and len(v.type.shape) < 2
            and v is not var
            and family.key_set.isdisjoint(keys_of.get(v, ()))
            and family.hears_nothing(clients.get(v, ()))
        ):
            # Not all is asked of it, but where all is asked of what it goes into.
            numbers.add(v)
        elif not noted(v):
            if numbers and v.owner is not None:
                for i in v.owner.inputs:
                    if i in numbers:
                        numbers.remove(i)
                        feature._compute(i, key)
            # As it would be in its turn, by PyTensor's own rules.
            feature._compute(v, key)


def check(self: Any, var: Any, key: Any) -> bool:
    """Do as `AssumptionFeature.check`."""
    if (
        self.cache.get((var, key), _UNKNOWN) is _UNKNOWN
        and type(self) is AssumptionFeature
        and not _METHODS & vars(self).keys()
        and AssumptionFeature.get is _stock_get
        and AssumptionFeature._drop_unknown_downstream is _stock_drop
        and does_as(AssumptionFeature._compute, _stock_compute)
        and core.infer_assumption_for_node is _stock_infer
    ):
        # As `get` has it.
        if self._stale_vars:
            self._drop_unknown_downstream(self._stale_vars)
            self._stale_vars.clear()
        if (var, key) not in self.cache:
            note_unknowns(self, var, key)
    return self.get(var, key) is _TRUE


def patch() -> Patch:
    """Return the patch."""
    return DropIn(AssumptionFeature, "check", check)
