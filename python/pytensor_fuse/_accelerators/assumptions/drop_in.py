"""Inference of assumptions with cached rules: the same answers in the same order.

PyTensor 3.0 has no rules for clients: their names are looked up at their use, so that this module
can be imported there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.assumptions import core
from pytensor.assumptions.core import (
    ASSUMPTION_INFER_REGISTRY,
    CONSTANT_INFER_REGISTRY,
    IMPLIES,
    AssumptionFeature,
    AssumptionKey,
    ConflictingAssumptionsError,
    FactState,
)
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.variable import TensorConstant

from pytensor_fuse._pytensor.compat.packages import does_as
from pytensor_fuse._pytensor.patching.drop_ins import DropIn, Together, in_file_of

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch

_UNKNOWN = FactState.UNKNOWN
_TRUE = FactState.TRUE
_FALSE = FactState.FALSE
_CONFLICT = FactState.CONFLICT
_NO_RULES: list[Any] = []
_stock_infer = core.infer_assumption_for_node
_stock_get = core.AssumptionFeature.get
_stock_compute = core.AssumptionFeature._compute
_MANY = 8192


class _Key:
    """The entries for a key besides rules for ops. The key is kept alive for its address."""

    __slots__ = ("asks_clients", "key", "related")

    def __init__(self, key: Any) -> None:
        self.key = key
        self.asks_clients = key in core.CLIENT_INFER_KEYS
        # Other keys that are asked, and which answer is one to this, too.
        self.related = (
            *((stronger, _TRUE) for stronger, weaker in IMPLIES.items() if key in weaker),
            *((weaker, _FALSE) for weaker in IMPLIES.get(key, ())),
        )


class _Rules:
    """The rules by key and class of op, valid until one is registered."""

    def __init__(self, counts: tuple[int, ...]) -> None:
        self.counts = counts
        # Keys are hashed and compared in Python.
        self.keys: dict[int, _Key] = {}
        # By the addresses of both, which are kept so that no others get them.
        self.of_nodes: dict[tuple[int, int], tuple[list[Any], Any, Any]] = {}
        self.of_clients: dict[tuple[int, int], tuple[Any, Any, Any]] = {}


_rules = _Rules(())


def current_rules() -> _Rules:
    """Return the current rules: a new object if rules may have been registered."""
    global _rules
    rules = _rules
    counts = (
        len(ASSUMPTION_INFER_REGISTRY),
        len(core.CLIENT_INFER_REGISTRY),
        len(core.CLIENT_INFER_KEYS),
        *map(len, IMPLIES.values()),
    )
    if rules.counts != counts or len(rules.of_nodes) + len(rules.of_clients) > _MANY:
        _rules = rules = _Rules(counts)
    return rules


def _rules_of(rules: _Rules, key: Any, class_: type) -> list[Any]:
    """Return the rules that `infer_assumption_for_node` goes through."""
    known = rules.of_nodes.get((id(key), id(class_)))
    if known is None:
        found = _NO_RULES
        for base in class_.__mro__:
            functions = ASSUMPTION_INFER_REGISTRY.get((key, base))
            if functions is not None:
                found = functions
                break
        known = rules.of_nodes[id(key), id(class_)] = found, key, class_
    return known[0]


def _client_rule_of(rules: _Rules, key: Any, class_: type) -> Any:
    """Return the rule that `infer_assumption_from_client` calls, or None."""
    known = rules.of_clients.get((id(key), id(class_)))
    if known is None:
        found = None
        for base in class_.__mro__:
            found = core.CLIENT_INFER_REGISTRY.get((key, base))
            if found is not None:
                break
        known = rules.of_clients[id(key), id(class_)] = found, key, class_
    return known[0]


def order_of(var: Any, key: Any, cache: dict[Any, Any]) -> tuple[list[Any], bool]:
    """Return the variables that are not known, in the order of `walk_toposort`; and if all are.

    Those that are known, and those without inputs, come first, as the walk from ``var`` meets them;
    then, first in, first out, those whose inputs have all come.
    """
    waits: dict[Any, int] = {}
    readers: dict[Any, list[Any]] = {}
    ready: list[tuple[Any, bool]] = []
    stack = [var]
    while stack:
        v = stack.pop()
        if v in waits:
            continue
        if (v, key) in cache:
            waits[v] = 0
            ready.append((v, False))
            continue
        owner = getattr(v, "owner", None)
        inputs = owner.inputs if owner is not None else ()
        if not inputs:
            waits[v] = 0
            ready.append((v, True))
            continue
        distinct = dict.fromkeys(inputs)
        waits[v] = len(distinct)
        for i in distinct:
            found = readers.get(i)
            if found is None:
                readers[i] = [v]
            else:
                found.append(v)
        stack.extend(inputs)
    order: list[Any] = []
    left = len(waits)
    for v, is_new in ready:
        left -= 1
        if is_new:
            order.append(v)
        for reader in readers.get(v, ()):
            count = waits[reader] - 1
            waits[reader] = count
            if not count:
                ready.append((reader, True))
    return order, left == 0


@in_file_of(_stock_infer)
def _infer(
    functions: list[Any], key: Any, feature: Any, node: Any, input_states: list[Any]
) -> list[Any]:
    """Do as `infer_assumption_for_node` once it has found the rules."""
    n_outputs = len(node.outputs)
    for function in functions:
        output_states: list[Any] = function(
            key, node.op, feature, feature.fgraph, node, input_states
        )
        if len(output_states) != n_outputs:
            raise ValueError(
                f"an assumption rule returned {len(output_states)} states for "
                f"{n_outputs} outputs on node {node!r}"
            )
        for state in output_states:
            if state is not _UNKNOWN:
                return output_states
    return [_UNKNOWN] * n_outputs


def compute(self: Any, var: Any, key: Any) -> Any:
    """Do as `AssumptionFeature._compute`."""
    has_own_get = type(self).get is not _stock_get or "get" in vars(self)
    return _found(self, var, key, current_rules(), has_own_get, has_own_get or _is_replaced(self))


def _is_replaced(feature: Any) -> bool:
    """Whether the method of the feature has been replaced."""
    return not does_as(type(feature)._compute, _stock_compute) or "_compute" in vars(feature)


@in_file_of(_stock_get)
def _found(
    self: Any, var: Any, key: Any, rules: _Rules, has_own_get: bool, has_own_compute: bool
) -> Any:
    """Return what `AssumptionFeature._compute` does.

    Parameters
    ----------
    self
        The feature, which does not know it yet.
    var, key
        What is asked.
    rules
        The rules as they are now.
    has_own_get, has_own_compute
        Whether the feature has methods that somebody wants to be called.
    """
    of_key = rules.keys.get(id(key))
    if of_key is None:
        of_key = rules.keys[id(key)] = _Key(key)
    cache = self.cache
    owner = getattr(var, "owner", None)
    # Each look-up in the cache hashes the key, which is done in Python.
    states: list[Any] | None = None
    order = None
    is_complete = True
    if owner is not None:
        states = [cache.get((i, key)) for i in owner.inputs]
        if None in states:
            states = None
            order, is_complete = order_of(var, key, cache)
    if order is None:
        if (var, key) not in cache:
            arguments = of_key, states, rules, has_own_get, has_own_compute
            return _found_of_one(self, var, *arguments)
        order = [var]
    state: Any = None
    for v in order:
        entry = v, key
        if entry in cache:
            state = cache[entry]
            continue
        owner = getattr(v, "owner", None)
        states = None if owner is None else [cache.get((i, key)) for i in owner.inputs]
        state = _found_of_one(self, v, of_key, states, rules, has_own_get, has_own_compute)
    if not is_complete:
        raise ValueError("graph contains cycles")
    return state


@in_file_of(_stock_get)
def _found_of_one(
    self: Any,
    v: Any,
    of_key: _Key,
    input_states: list[Any] | None,
    rules: _Rules,
    has_own_get: bool,
    has_own_compute: bool,
) -> Any:
    """Find out and note what is known of one variable, all inputs of which were asked before.

    Parameters
    ----------
    self
        The feature, which does not know it yet.
    v, of_key
        What is asked.
    input_states
        What is noted of the inputs of the node that computes the variable, if one does.
    rules, has_own_get, has_own_compute
        As for `_found`.
    """
    cache = self.cache
    key = of_key.key
    entry = v, key
    cache[entry] = _UNKNOWN
    keys = self._var_to_keys.get(v)
    if keys is None:
        keys = self._var_to_keys[v] = set()
    keys.add(key)

    state: Any = _UNKNOWN
    if input_states is not None:
        owner = v.owner
        # As `get` has it: what is unknown is asked anew once the graph has changed.
        if has_own_get or None in input_states or _CONFLICT in input_states or self._stale_vars:
            input_states = [self.get(i, key) for i in owner.inputs]
        functions = _rules_of(rules, key, type(owner.op))
        if functions:
            if core.infer_assumption_for_node is _stock_infer:
                output_states = _infer(functions, key, self, owner, input_states)
            else:
                output_states = core.infer_assumption_for_node(
                    key, owner.op, self, self.fgraph, owner, input_states
                )
            state = output_states[owner.outputs.index(v)]
    elif isinstance(v, TensorConstant) and key in CONSTANT_INFER_REGISTRY:
        state = CONSTANT_INFER_REGISTRY[key](v)

    if state is _UNKNOWN and of_key.asks_clients:
        for client, input_index in self.fgraph.clients.get(v, ()):
            op = client.op
            core_op = op.core_op if isinstance(op, Blockwise) else op
            rule = _client_rule_of(rules, key, type(core_op))
            state = _UNKNOWN if rule is None else rule(key, core_op, client, input_index)
            if state is not _UNKNOWN:
                break

    # What `get` finds where it is known, or where it has to be computed, without the call.
    if state is _UNKNOWN:
        stale = self._stale_vars
        for other, tells in of_key.related:
            found = _CONFLICT if stale or has_own_get else cache.get((v, other))
            if found is None:
                found = (
                    self._compute(v, other)
                    if has_own_compute
                    else _found(self, v, other, rules, has_own_get, has_own_compute)
                )
            if found is _CONFLICT:
                found = self.get(v, other)
            if found is tells:
                state = tells
                break

    if state is _CONFLICT:
        raise ConflictingAssumptionsError(
            f"Conflicting evidence for {key} on {v!r} from owner-inferred rules."
        )

    if state is not _UNKNOWN:
        cache[entry] = state
    return state


_HASH = "_pytensor_fuse_hash"


def hash_key(self: Any) -> int:
    """Do as `AssumptionKey.__hash__`, computed once for each key."""
    own = self.__dict__
    try:
        found: int = own[_HASH]
    except KeyError:
        # Keys cannot be changed.
        found = own[_HASH] = hash((self.name, self.short_name))
    return found


def patch() -> Patch:
    """Return the patch."""
    return Together(
        DropIn(AssumptionFeature, "_compute", compute),
        DropIn(AssumptionKey, "__hash__", hash_key),
    )
