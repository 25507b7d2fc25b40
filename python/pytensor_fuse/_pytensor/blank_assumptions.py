"""What is unknown of a variable because nothing is known of what it is computed from.

Rewrites ask of each transpose whether what it transposes is symmetric, and so whether that is
diagonal, positive definite, and so on, and so of all that it is computed from: six questions for
each variable, each of which calls a rule, and nearly all of which have the answer that nothing is
known. Where that is so can be told at once: an Elemwise or a DimShuffle of inputs of which nothing
is known gives something of which nothing is known, but for what is the same along both axes.

The answers are noted where PyTensor would have noted them; what is left is for PyTensor to ask.
"""

from __future__ import annotations

from typing import Any, Final

from pytensor.assumptions import core
from pytensor.assumptions.core import AssumptionFeature, FactState
from pytensor.graph.basic import Constant
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorConstant

from pytensor_fuse._pytensor import quick_assumptions

_UNKNOWN = FactState.UNKNOWN
_TRUE = FactState.TRUE

_ASSUMPTIONS: Final = "pytensor.assumptions"

# Rules by which nothing follows from nothing, by the module and name of each; `facts` has their
# fingerprints. That of symmetric Elemwise is looked at for each node.
_RULES: Final[dict[type, frozenset[str]]] = {
    Elemwise: frozenset(
        f"{_ASSUMPTIONS}.{name}"
        for name in (
            "diagonal._elemwise",
            "positive_definite._elemwise",
            "symmetric._elemwise",
            "triangular._elemwise_lower",
            "triangular._elemwise_upper",
            "tridiagonal._elemwise",
        )
    ),
    DimShuffle: frozenset(
        f"{_ASSUMPTIONS}.{name}"
        for name in (
            "dimshuffle.dimshuffle_propagates_matrix_property",
            "diagonal._dimshuffle",
            "positive_definite._dimshuffle",
            "symmetric._dimshuffle",
            "triangular._lower_dimshuffle",
            "triangular._upper_dimshuffle",
            "tridiagonal._dimshuffle",
        )
    ),
}

_stock_check = AssumptionFeature.check
_stock_get = AssumptionFeature.get
_stock_compute = AssumptionFeature._compute
_stock_infer = core.infer_assumption_for_node
_METHODS: Final = frozenset({"get", "check", "_compute"})


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
        self._single_rules = _single_rules()
        # By class of ops, which are kept.
        self._silent: dict[type, bool] = {}

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

    def nothing_is_known_of(self, leaf: Any) -> bool:
        """Whether no rule says anything of a variable that nothing computes."""
        if isinstance(leaf, TensorConstant):
            return all(rule(leaf) is _UNKNOWN for rule in self._of_constants)
        return not isinstance(leaf, Constant)


_families: dict[int, _Family] = {}


def _family(key: Any) -> _Family:
    rules = quick_assumptions.current_rules()
    family = _families.get(id(key))
    if family is None or family.first is not key or not family.still_is(rules):
        if len(_families) > 64:
            _families.clear()
        family = _families[id(key)] = _Family(key, rules)
    return family


def _is_blank(node: Any) -> bool:
    """Whether nothing is known of what a node gives if nothing is known of what it reads."""
    class_ = type(node.op)
    if class_ is DimShuffle:
        return True
    if class_ is not Elemwise:
        return False
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
    """Note of what ``var`` is computed from, and of itself, that nothing is known where that is so.

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
    # Those of which nothing is known.
    blank: set[Any] = set()

    def has_blank_inputs(owner: Any) -> bool:
        for i in owner.inputs:
            if i not in blank:
                # Known from before.
                known = keys_of.get(i)
                if known is None or not known >= family.key_set:
                    return False
                if any(cache.get((i, one)) is not _UNKNOWN for one in keys):
                    return False
                blank.add(i)
        return True

    for v in order:
        if v in keys_of:
            continue
        owner = v.owner
        if owner is None:
            if not family.nothing_is_known_of(v):
                continue
        elif len(owner.outputs) > 1 or not _is_blank(owner) or not has_blank_inputs(owner):
            continue
        if family.hears_nothing(clients.get(v, ())):
            blank.add(v)
            for one in keys:
                cache[v, one] = _UNKNOWN
            keys_of[v] = set(family.key_set)


def check(self: Any, var: Any, key: Any) -> bool:
    """Do as `AssumptionFeature.check`."""
    if (
        (var, key) not in self.cache
        and not self._stale_vars
        and type(self) is AssumptionFeature
        and not _METHODS & vars(self).keys()
        and AssumptionFeature.get is _stock_get
        and _is(AssumptionFeature._compute, _stock_compute)
        and core.infer_assumption_for_node is _stock_infer
    ):
        note_unknowns(self, var, key)
    found: bool = self.get(var, key) is _TRUE
    return found


def _is(method: object, stock: object) -> bool:
    return method is stock or getattr(method, "__wrapped__", None) is stock
