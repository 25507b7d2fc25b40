"""Merging: of nodes that compute the same thing, one stays.

A drop-in for what PyTensor's `MergeFeature` and `MergeOptimizer` do. Those look for the equals of a
node among the clients of its inputs, at each import and each change of an input, and replace one
node at a time. Here the feature only notes which nodes came or changed. The pass looks up those
that are still there, by op and inputs, in one table, and makes all replacements in one edit.

The table is never kept up to date: what it gives is checked against the graph. Its keys hold the
variables, so that no other object can come to have the identity of one of them.

While the pass plans, it takes each variable for the one that will replace it, so that nodes whose
inputs will be the same are found equal. Nodes that are equal in this sense may all be replaced at
once: since equal nodes have equal inputs, a cycle among the nodes that stay would be an infinite
descent in the graph before.

Of equal nodes, the one that is looked up first stays: one that was there at the last pass, then the
one imported first. But where the static type of an output says more than that of another, the one
that says more stays. Constants are equal if their types are and their data are bit for bit.
"""

from __future__ import annotations

from collections import UserList, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from pytensor.compile.aliasing import Supervisor
from pytensor.graph.basic import AtomicVariable, Constant, NominalVariable
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import AlreadyThere, Feature, ReplaceValidate
from pytensor.graph.fg import Output
from pytensor.graph.rewriting.basic import MergeFeature
from pytensor.graph.type import Type
from pytensor.graph.utils import AssocList, InconsistencyError
from pytensor.misc.ordered_set import OrderedSet
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._apply import Listeners, replace_all, report
from pytensor_fuse._compat import INPLACE_VALIDATORS
from pytensor_fuse._constants import content, data_content
from pytensor_fuse._kernel_outputs import merge_outputs

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.op import Op

    Node = Apply[Any]
    Var = Variable[Any, Any]
    Key = tuple[Any, ...]
    # Ways to merge a node or constant, each a list of what replaces what.
    Entry = list[list[tuple[Var, Var, str]]]

REASON = "MergeOptimizer"

# What they refuse in a graph are nodes that write over their inputs. (`ReplaceValidate` refuses
# nodes that come back, too; merging imports none.)
_INPLACE_VALIDATORS = {
    DestroyHandler,
    ReplaceValidate,
    Supervisor,
    *INPLACE_VALIDATORS,
}


@dataclass
class Tally:
    """What a pass did."""

    n_refused: int = 0
    n_merged: int = 0
    """Variables replaced, constants among them."""
    n_constants: int = 0

    def add(self, replacements: Iterable[tuple[Var, Var]]) -> None:
        """Count replacements."""
        for old, _ in replacements:
            self.n_merged += 1
            self.n_constants += old.owner is None


@dataclass(slots=True)
class _Plan:
    one: bool
    """Whether this is for one merge, or for the constants of one node; the rest is waiting."""
    waiting: dict[Node, None]
    """What is still to be looked up."""
    queue: list[Node]
    """What has been or is still to be looked up, some of it twice."""
    new_of: dict[Var, Var] = field(default_factory=dict)
    """What replaces a variable, unless that is to be replaced itself."""
    dying: dict[Node, Node] = field(default_factory=dict)
    """The nodes to be merged, each with one that stays or is to be merged itself."""
    unlike: list[tuple[Node, Node]] = field(default_factory=list)
    """Equal nodes neither of which can replace the other in all outputs."""

    def replacements(self) -> list[tuple[Var, Var]]:
        return [(old, self.final(old)) for old in self.new_of]

    def requeue(self, clients: Iterable[tuple[Node, int]]) -> None:
        """Have the clients of what is replaced looked up once more."""
        if self.one:
            # The edit notes them.
            return
        for client, _ in clients:
            if client not in self.waiting and client not in self.dying:
                self.waiting[client] = None
                self.queue.append(client)

    def final(self, variable: Var) -> Var:
        new_of = self.new_of
        while variable in new_of:
            variable = new_of[variable]
        return variable


class LazyMergeFeature(MergeFeature):
    """Notes what merging has to look up, and keeps the table of what has been looked up.

    The public attributes of its base class are worked out when they are asked for. PyTensor's own
    pass can work with it: it finds in `scheduled` what there is to merge.
    """

    def on_attach(self, fgraph: FunctionGraph) -> None:
        """Note all nodes of ``fgraph``.

        Raises
        ------
        AlreadyThere
            If ``fgraph`` has a feature for merging.
        """
        if hasattr(fgraph, "merge_feature"):
            raise AlreadyThere
        fgraph.merge_feature = self  # type: ignore[attr-defined]
        self.begin(fgraph)

    def begin(self, fgraph: FunctionGraph) -> None:
        """Note all nodes of ``fgraph``, and forget what was known."""
        self._fgraph = fgraph
        roots = (variable.owner for variable in fgraph.outputs)
        self._pending: dict[Node, None] = dict.fromkeys(_in_order(roots, fgraph.apply_nodes))
        self._one_by_one = False
        self._tell: Listeners | None = None
        self._has_other_validators = False
        self.blacklist: list[tuple[Node | None, Node | None]] = []
        self._schedule = _Schedule(self)
        self._forget()

    def _forget(self) -> None:
        # Class of the op and inputs, to the first node that had them when it was looked up; and to
        # the others that could not be merged with that one. To hash an op takes longer than all the
        # rest, so that is put off until nodes of different ops have the same key. That then leads
        # to None, and their keys have the number of the op.
        self._nodes: dict[Key, Node | None] = {}
        self._others: dict[Key, list[Node]] = {}
        # Numbers of ops by identity, and by value. What is known by identity is held.
        self._numbers: dict[int, int] = {}
        self._ops: dict[Op, int] = {}
        self._unhashable: list[tuple[Op, int]] = []
        self._held: list[object] = []
        self._crowd = 1000
        # Classes of variables that are not constants.
        self._plain: set[type] = set()
        # Whether a kernel has been looked up, so that outputs are to be compared after each change.
        self.kernels_due = False
        self._keys: dict[Var, Key] = {}
        self._constants: dict[Key, Var] = {}

    # Callbacks ----------------------------------------------------------------------------

    def on_import(self, fgraph: FunctionGraph, node: Node, reason: object) -> None:
        """Note ``node``."""
        self._pending[node] = None

    def on_change_input(
        self, fgraph: FunctionGraph, node: Node, i: int, r: Var, new_r: Var, reason: object = None
    ) -> None:
        """Note ``node``."""
        self._pending[node] = None

    def on_prune(self, fgraph: FunctionGraph, node: Node, reason: object) -> None:
        """Do nothing: whether a node is there is asked when it matters."""

    # Copies -------------------------------------------------------------------------------

    def clone(self) -> LazyMergeFeature:
        """Make one for another graph."""
        return type(self)()

    def __getstate__(self) -> dict[str, Any]:
        return {"_fgraph": self._fgraph} if "_fgraph" in vars(self) else {}

    def __getattr__(self, name: str) -> Any:
        # The table hashes variables and ops. It is made anew when it is first used, for while an
        # object is unpickled its parts may be incomplete.
        state = vars(self)
        if name.startswith("__") or "_fgraph" not in state or "_pending" in state:
            raise AttributeError(name)
        self.begin(self._fgraph)
        return getattr(self, name)

    # Keys ---------------------------------------------------------------------------------

    def _exact_key(self, key: Key, known: Node | None, node: Node) -> Key:
        """Return the key of ``node`` where nodes of several ops share the key by class."""
        if known is not None:
            exact = self._number(known.op), *key[1:]
            self._nodes[exact], self._nodes[key] = known, None
            if key in self._others:
                self._others[exact] = self._others.pop(key)
        return self._number(node.op), *key[1:]

    def _number(self, op: Op) -> int:
        """Return the number of ``op`` and of its equals."""
        number = self._numbers.get(id(op))
        if number is not None:
            return number
        try:
            number = self._ops.setdefault(op, len(self._ops))
        except TypeError:
            number = next((n for other, n in self._unhashable if op == other), 0)
            if number == 0:
                number = -1 - len(self._unhashable)
                self._unhashable.append((op, number))
        self._numbers[id(op)] = number
        self._held.append(op)
        return number

    def _representative(self, variable: Var) -> Var:
        """Return the constant to take for ``variable``; itself if it is not a constant."""
        key = self._keys.get(variable)
        if key is None:
            key = self._key(variable)
            if key is None:
                self._plain.add(type(variable))
                return variable
            self._keys[variable] = key
        first = self._constants.setdefault(key, variable)
        if first is not variable and first not in self._fgraph.variables:
            self._constants[key] = first = variable
        return first

    def _key(self, variable: Var) -> Key | None:
        # There is one nominal variable of each kind.
        if not isinstance(variable, AtomicVariable) or isinstance(variable, NominalVariable):
            return None
        kind = type(variable)
        if not isinstance(variable, Constant):
            return kind, variable.merge_signature()
        encoded = content(variable)
        if encoded is None:
            # Its identity is in the key.
            self._held.append(variable.data)
        key = _key_of_data(variable.type, variable.data, encoded)
        if kind is not variable.type.constant_type:
            key = (*key, kind)
        if kind.merge_signature is not AtomicVariable.merge_signature:
            # A class can keep more apart, but not less.
            key = (*key, variable.merge_signature())
        return key

    # The pass -----------------------------------------------------------------------------

    def merge(self, fgraph: FunctionGraph) -> Tally:
        """Merge the nodes that came or changed, and those that this makes equal.

        Takes expected time in proportion to the inputs of those nodes and to what merging changes.

        Raises
        ------
        Exception
            Whatever a feature of the graph raises. What was merged before stays so, and nothing is
            half merged.
        """
        tally = Tally()
        self._schedule.give_back()
        while self._pending:
            plan = self._plan(self._one_by_one)
            if plan.new_of and self._can_be_refused(fgraph) and not plan.one:
                self._pending = dict.fromkeys(plan.queue)
                plan = self._plan(one=True)
            self._pending = plan.waiting
            unlike = deque(plan.unlike)
            try:
                if plan.new_of:
                    self._replace(fgraph, plan, tally)
                while unlike:
                    self._replace_unlike(fgraph, *unlike[0], tally)
                    unlike.popleft()
            except BaseException:
                self._pending.update(dict.fromkeys(node for node, _ in unlike))
                raise
        self.blacklist = []
        if len(self._nodes) > self._crowd:
            self._tidy(fgraph)
        return tally

    def _tidy(self, fgraph: FunctionGraph) -> None:
        """Drop what the table says about nodes and constants that are gone."""
        apply_nodes, variables = fgraph.apply_nodes, fgraph.variables
        self._nodes = {
            key: node for key, node in self._nodes.items() if node is None or node in apply_nodes
        }
        self._constants = {key: c for key, c in self._constants.items() if c in variables}
        self._keys = {c: key for c, key in self._keys.items() if c in variables}
        # The work is in proportion to what has been looked up since the last time.
        self._crowd = 1000 + 2 * len(self._nodes)

    def _plan(self, one: bool) -> _Plan:
        """Look up what is noted, and all that reads what will be replaced."""
        fgraph = self._fgraph
        apply_nodes, clients = fgraph.apply_nodes, fgraph.clients
        nodes, plain = self._nodes, self._plain
        plan = _Plan(one, self._pending, list(self._pending))
        waiting, new_of, dying = plan.waiting, plan.new_of, plan.dying

        for node in plan.queue:
            if node not in apply_nodes:
                # What stands for an output is no node of the graph, and may read a constant.
                if type(node.op) is not Output or node.inputs[0] not in fgraph.variables:
                    del waiting[node]
                    continue
            elif node in dying:
                del waiting[node]
                continue
            parts: list[Any] = [type(node.op)]
            for variable in node.inputs:
                if variable.__class__ in plain:
                    while variable in new_of:
                        variable = new_of[variable]
                    parts.append(variable)
                    continue
                first = self._representative(variable)
                parts.append(first)
                if first is not variable and variable not in new_of:
                    new_of[variable] = first
                    plan.requeue(clients[variable])
            del waiting[node]
            if one and new_of:
                # The edit of its constants notes it again.
                break
            if node not in apply_nodes:
                continue
            if parts[0] is Elemwise and type(node.op.scalar_op) is Composite:
                self.kernels_due = True
            key = tuple(parts)
            known = nodes.setdefault(key, node)
            if known is node:
                continue
            if known is None or not (known.op is node.op or known.op == node.op):
                key = self._exact_key(key, known, node)
                known = nodes.setdefault(key, node)
                if known is node:
                    continue
            other = self._equal_of(node, key, plan)
            if other is None:
                continue
            direction = _direction(node, other)
            if direction == 0:
                plan.unlike.append((node, other))
                self._keep_besides(key, node)
                continue
            if direction < 0:
                if nodes[key] is other:
                    nodes[key] = node
                else:
                    self._keep_besides(key, node)
                node, other = other, node
            dying[node] = other
            for old, new in zip(node.outputs, other.outputs, strict=True):
                new_of[old] = new
                plan.requeue(clients[old])
            if one:
                break
        return plan

    def _equal_of(self, node: Node, key: Key, plan: _Plan) -> Node | None:
        """Return a node to merge with ``node``; if there is none, put that into the table."""
        known = [self._nodes[key]]
        if self._others:
            known += self._others.get(key, ())
        valid: list[Node] = []
        for candidate in known:
            assert candidate is not None, "keys with the number of an op lead to nodes"
            if candidate is not node and self._will_read(candidate, key, plan):
                if self._may_merge(node, candidate, plan.one):
                    return candidate
                valid.append(candidate)
        # Those that are not valid are in the table elsewhere, will be, or are gone.
        first, *others = *valid, node
        self._nodes[key] = first
        if others:
            self._others[key] = others
        else:
            self._others.pop(key, None)
        return None

    def _keep_besides(self, key: Key, node: Node) -> None:
        others = self._others.setdefault(key, [])
        if node not in others:
            others.append(node)

    def _will_read(self, node: Node, key: Key, plan: _Plan) -> bool:
        """Whether ``node`` will be in the graph, and read what ``key`` says."""
        if node not in self._fgraph.apply_nodes or node in plan.dying:
            return False
        new_of = plan.new_of
        for i, variable in enumerate(node.inputs, 1):
            while variable in new_of:
                variable = new_of[variable]
            if variable is not key[i]:
                return False
        return True

    def _may_merge(self, node: Node, other: Node, one: bool) -> bool:
        if len(node.outputs) != len(other.outputs):
            return False
        if not one:
            return True
        if (node, other) in self.blacklist or (other, node) in self.blacklist:
            return False
        # Two destroyers of one variable are always refused: that can be known without an edit.
        clients = self._fgraph.clients
        return not (_is_destroyed(node, clients) and _is_destroyed(other, clients))

    def _can_be_refused(self, fgraph: FunctionGraph) -> bool:
        """Whether validation may refuse a graph in which equal nodes are merged."""
        tell = self._tell
        if tell is None or not tell.are_current():
            self._tell = Listeners(fgraph)
            self._has_other_validators = any(
                type(feature).on_validate is not Feature.on_validate
                and type(feature) not in _INPLACE_VALIDATORS
                for feature in fgraph._features
            )
        if self._has_other_validators:
            return True
        handler = getattr(fgraph, "destroy_handler", None)
        return handler is not None and bool(handler._destroying_apps)

    def _replace(self, fgraph: FunctionGraph, plan: _Plan, tally: Tally) -> None:
        if not plan.one:
            self._pending = {}
        replacements = plan.replacements()
        dying = list(plan.dying) if len(plan.dying) < 2 else _in_order(plan.dying, plan.dying)
        validate = plan.one and bool(plan.dying)
        try:
            replace_all(fgraph, [], replacements, dying, REASON, validate=validate, tell=self._tell)
        except BaseException as error:
            if plan.one:
                self._pending.update(dict.fromkeys(plan.dying))
                if not plan.dying or not isinstance(error, InconsistencyError):
                    raise
                self.blacklist += plan.dying.items()
                tally.n_refused += 1
                return
            # The graph is as it was. One by one shows which merge it is, and does the others.
            self._one_by_one = True
            self._pending = dict.fromkeys(plan.queue)
            if not isinstance(error, Exception):
                raise
            return
        tally.add(replacements)
        report(replacements, REASON)
        if not plan.one:
            # What the edit changed has been looked up already, under the inputs that it has now.
            done = set(plan.queue)
            self._pending = {node: None for node in self._pending if node not in done}

    def _replace_unlike(self, fgraph: FunctionGraph, node: Node, other: Node, tally: Tally) -> None:
        """Merge equal nodes neither of which has the more specific type in all outputs."""
        apply_nodes = fgraph.apply_nodes
        if not (node in apply_nodes and other in apply_nodes and node.inputs == other.inputs):
            self._pending[node] = None
            return
        pairs = []
        for old, new in zip(node.outputs, other.outputs, strict=True):
            if old.type.is_super(new.type):
                pair = old, new
            elif new.type.is_super(old.type):
                pair = new, old
            else:
                pair = old, old.type.convert_variable(new)
            if fgraph.clients[pair[0]]:
                pairs.append(pair)
        try:
            fgraph.replace_all_validate(pairs, reason=REASON, verbose=False)
        except InconsistencyError:
            tally.n_refused += 1
            self.blacklist.append((node, other))
            return
        tally.add(pairs)
        report(pairs, REASON)

    def note(self, variable: Var) -> None:
        """Note what has to do with the merging of ``variable``."""
        nodes = (
            [variable.owner] if variable.owner else [c for c, _ in self._fgraph.clients[variable]]
        )
        self._pending.update(dict.fromkeys(nodes))

    # What others may ask for --------------------------------------------------------------

    def schedule(self, entries: list[Entry]) -> None:
        """Add what there is to merge to ``entries``, in the form that PyTensor's pass takes."""
        while self._pending:
            plan = self._plan(one=True)
            self._pending = plan.waiting
            for node, other in [*plan.dying.items(), *plan.unlike]:
                entries.append([_merges(zip(node.outputs, other.outputs, strict=True))])
            if not plan.dying:
                entries += [[_merges([pair])] for pair in plan.new_of.items()]

    @property
    def scheduled(self) -> _Schedule:  # type: ignore[override]
        """What there is to merge, in the form that PyTensor's pass takes."""
        return self._schedule

    @property
    def nodes_seen(self) -> set[Node]:  # type: ignore[override]
        """The nodes that are not equal to others, or could not be merged with them."""
        return set(self._looked_up())

    @property
    def noinput_nodes(self) -> OrderedSet:  # type: ignore[override]
        """Those of `nodes_seen` that have no inputs."""
        return OrderedSet(node for node in self._looked_up() if not node.inputs)

    @property
    def seen_atomics(self) -> set[int]:  # type: ignore[override]
        """The identities of the constants that others are merged with."""
        return {id(constant) for constant in self.representatives()}

    @property
    def atomic_sig(self) -> AssocList:  # type: ignore[override]
        """The constants that others are merged with, and PyTensor's signatures of them."""
        signatures = AssocList()
        for constant in self.representatives():
            signatures[constant] = _signature(constant)
        return signatures

    @property
    def atomic_sig_inv(self) -> AssocList:  # type: ignore[override]
        """Finds constants by their signatures, bit for bit."""
        return _BySignature(self)

    def _looked_up(self) -> Iterator[Node]:
        self.schedule(self._schedule.entries)
        apply_nodes = self._fgraph.apply_nodes
        for nodes in (self._nodes.values(), *self._others.values()):
            yield from (node for node in nodes if node is not None and node in apply_nodes)

    def representatives(self) -> list[Var]:
        """Return the constants of the graph, of equal ones the first."""
        self._look_up_constants()
        variables = self._fgraph.variables
        return [constant for constant in self._constants.values() if constant in variables]

    def constant_of(self, key: Key) -> Var | None:
        """Return the constant of the graph that others with this key are merged with."""
        self._look_up_constants()
        constant = self._constants.get(key)
        return constant if constant in self._fgraph.variables else None

    def _look_up_constants(self) -> None:
        variables, plain = self._fgraph.variables, self._plain
        for node in self._pending:
            for variable in node.inputs:
                if variable.__class__ not in plain and variable in variables:
                    self._representative(variable)


# It differs from what the base class says: PyTensor asks the class which events it is told of.
LazyMergeFeature._feature_callbacks = frozenset(
    {"on_attach", "on_detach", "on_import", "on_change_input"}
)


def merge(fgraph: FunctionGraph, feature: LazyMergeFeature) -> Tally:
    """Merge equal nodes and constants of ``fgraph``, and equal outputs of kernels.

    Raises
    ------
    Exception
        As `LazyMergeFeature.merge` does.
    """
    changed = bool(feature._pending or feature._schedule.entries)
    tally = feature.merge(fgraph)
    refused: set[tuple[Var, Var]] = set()
    due = changed and feature.kernels_due
    while due:
        merged = merge_outputs(fgraph, refused, REASON)
        if not merged:
            break
        report(merged, REASON)
        tally.add(merged)
        # What reads them may be equal now.
        more = feature.merge(fgraph)
        tally.n_refused += more.n_refused
        tally.n_merged += more.n_merged
        tally.n_constants += more.n_constants
        # That may have made inputs of other kernels, or of what is no kernel, the same.
        due = more.n_merged > 0
    tally.n_refused += len(refused)
    return tally


def merge_if_attached(fgraph: FunctionGraph) -> None:
    """Merge as `merge` does, if that is what ``fgraph`` has our feature for."""
    feature = getattr(fgraph, "merge_feature", None)
    if isinstance(feature, LazyMergeFeature):
        merge(fgraph, feature)


def adopt(fgraph: FunctionGraph) -> LazyMergeFeature | None:
    """Return the feature for merging of ``fgraph``, as ours if it is PyTensor's own.

    What PyTensor's own feature knows is found anew: it may take constants for equal that differ.
    None if the feature is of another class.
    """
    feature: Any = fgraph.merge_feature
    kind = type(feature)
    if kind is MergeFeature:
        vars(feature).clear()
        feature.__class__ = LazyMergeFeature
        feature.begin(fgraph)
    return feature if isinstance(feature, LazyMergeFeature) else None


class _Schedule(UserList["Entry"]):
    """What there is to merge, whenever that is asked for."""

    def __init__(self, feature: LazyMergeFeature) -> None:
        self._feature = feature
        self.entries: list[Entry] = []

    @property
    def data(self) -> list[Entry]:  # type: ignore[override]
        self._feature.schedule(self.entries)
        return self.entries

    def give_back(self) -> None:
        """Note what no one has merged."""
        for entry in self.entries:
            for old, _, _ in (replacement for candidate in entry for replacement in candidate):
                self._feature.note(old)
        self.entries.clear()


class _BySignature(AssocList):
    """The constants of a graph by PyTensor's signatures of them."""

    def __init__(self, feature: LazyMergeFeature) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._feature = feature

    def get(self, item: Any, default: Any) -> Any:
        """Return the constant of the graph with this signature and these bits."""
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Type):
            found = self._feature.constant_of(_key_of_data(*item, data_content(item[1])))
        else:
            constants = self._feature.representatives()
            found = next((c for c in constants if _signature(c) == item), None)
        return default if found is None else found


def _key_of_data(type_: Type[Any], data: object, encoded: bytes | None) -> Key:
    """Return the key of a plain constant; ``encoded`` is the content of its data.

    Without content, the key holds for no longer than the data are held.
    """
    return type_, id(data) if encoded is None else encoded


def _signature(constant: Var) -> Any:
    return cast("AtomicVariable[Any]", constant).merge_signature()


def _merges(pairs: Iterable[tuple[Var, Var]]) -> list[tuple[Var, Var, str]]:
    return [(old, new, "merge") for old, new in pairs]


def _direction(node: Node, other: Node) -> int:
    """Return 1 if ``other`` can replace ``node`` in all outputs, -1 if the reverse, else 0."""
    unlike = []
    for a, b in zip(node.outputs, other.outputs, strict=True):
        if a.type is not b.type and a.type != b.type:
            unlike.append((a.type, b.type))
    if all(mine.is_super(its) for mine, its in unlike):
        return 1
    return -1 if all(its.is_super(mine) for mine, its in unlike) else 0


def _in_order(roots: Iterable[Node | None], within: Container[Node]) -> list[Node]:
    """Sort the nodes from which the roots are computed topologically; they come first seen first.

    Takes time in proportion to the inputs of these nodes.
    """
    order: dict[Node, None] = {}
    for root in roots:
        stack = [root]
        while stack:
            node = stack[-1]
            if node is None or node in order or node not in within:
                stack.pop()
                continue
            owners = [variable.owner for variable in node.inputs]
            before = [owner for owner in owners if owner is not None and owner not in order]
            before = [owner for owner in before if owner in within]
            if before:
                stack += reversed(before)
            else:
                order[node] = None
                stack.pop()
    return list(order)


def _is_destroyed(node: Node, clients: dict[Var, list[tuple[Node, int]]]) -> bool:
    """Whether a client of its first output writes over that."""
    return any(
        position in positions
        for client, position in clients[node.outputs[0]]
        for positions in client.op.destroy_map.values()
    )
