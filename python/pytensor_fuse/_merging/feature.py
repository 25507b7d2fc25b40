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

from collections import UserList
from dataclasses import dataclass
from functools import lru_cache
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
from pytensor.tensor.type import TensorType

from pytensor_fuse._core import MergeTable, in_order
from pytensor_fuse._identity.attributes import PLAIN_OPS
from pytensor_fuse._identity.contents import content, data_content
from pytensor_fuse._merging.kernel_outputs import merge_outputs
from pytensor_fuse._pytensor.comparison import compared
from pytensor_fuse._pytensor.edits import Listeners, replace_all, report
from pytensor_fuse._pytensor.versions import INPLACE_VALIDATORS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.op import Op

    from pytensor_fuse._core import MergePlan

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
        roots = [variable.owner for variable in fgraph.outputs]
        self._pending: dict[Node, None] = dict.fromkeys(in_order(roots, fgraph.apply_nodes))
        self._one_by_one = False
        self._tell: Listeners | None = None
        self._has_other_validators = False
        self.blacklist: list[tuple[Node | None, Node | None]] = []
        self._refused: set[tuple[Node, Node]] = set()
        self._schedule = _Schedule(self)
        self._table = MergeTable(PLAIN_OPS, Output)
        self._crowd = _crowd(len(self._pending))
        self._numbers = _Numbers()
        self._has_kernels = False
        # Since kernels were compared by their outputs.
        self._n_looked_up = 0
        self._met_kernels = False
        self._n_free_comparisons = 20

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

    # What is the same ----------------------------------------------------------------------

    def describe_op(self, op: Op) -> tuple[int, bool]:
        """Return a number that equal ops share, and whether this is a kernel.

        Hashing an op takes longer than all the rest of a look-up, so that this goes by the
        class. Classes that may be equal to others, as far as is known, share one.
        """
        kind = type(op)
        is_known = kind.__eq__ is object.__eq__ or compared(kind) is not None
        labels = self._numbers.labels
        label = labels.setdefault(kind if is_known else None, len(labels))
        is_kernel = kind is Elemwise and type(cast("Elemwise", op).scalar_op) is Composite
        return label, is_kernel

    def number_of_op(self, op: Op) -> int:
        """Return the number of ``op`` and of its equals."""
        return self._numbers.of_op(op)

    def constant_number(self, variable: Var) -> int | None:
        """Return the number of a constant and of its equals, None if it is not a constant."""
        key = self._key(variable)
        constants = self._numbers.constants
        return None if key is None else constants.setdefault(key, len(constants))

    def may_merge(self, node: Node, other: Node) -> bool:
        """Whether two equal nodes may be merged, as far as can be known without an edit."""
        if (node, other) in self._refused or (other, node) in self._refused:
            return False
        # Two destroyers of one variable are always refused.
        clients = self._fgraph.clients
        return not (_is_destroyed(node, clients) and _is_destroyed(other, clients))

    def direction(self, node: Node, other: Node) -> int:
        """Return 1 if ``other`` can replace ``node`` in all outputs, -1 if the reverse, else 0."""
        pairs = [(a.type, b.type) for a, b in zip(node.outputs, other.outputs, strict=True)]
        if all(mine.is_super(its) for mine, its in pairs):
            return 1
        return -1 if all(its.is_super(mine) for mine, its in pairs) else 0

    def _refuse(self, pairs: list[tuple[Node, Node]]) -> None:
        self.blacklist += pairs
        self._refused.update(pairs)

    def _key(self, variable: Var) -> Key | None:
        is_atomic, is_constant = _is_atomic(type(variable))
        if not is_atomic:
            return None
        atom = cast("Constant[Any]", variable)
        kind = type(atom)
        if not is_constant:
            return kind, atom.merge_signature()
        encoded = content(atom)
        if encoded is None:
            # Its identity is in the key.
            self._numbers.held.append(atom.data)
        key = _key_of_data(atom.type, atom.data, encoded)
        if kind is not atom.type.constant_type:
            key = (*key, kind)
        if kind.merge_signature is not AtomicVariable.merge_signature:
            # A class can keep more apart, but not less.
            key = (*key, atom.merge_signature())
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
            one = self._one_by_one
            plan = self._plan(one)
            if plan.replacements and not one and self._can_be_refused(fgraph):
                one = True
                self._pending = dict.fromkeys(self._table.queue(plan)) | self._pending
                plan = self._plan(one)
            unlike = plan.incomparable
            try:
                if plan.replacements:
                    self._replace(fgraph, plan, one, tally)
                while unlike:
                    self._replace_unlike(fgraph, *unlike[0], tally)
                    del unlike[0]
            except BaseException:
                # The table takes them for done.
                self._pending.update(dict.fromkeys(node for node, _ in unlike))
                raise
        self.blacklist = []
        self._refused.clear()
        if len(self._table) > self._crowd:
            self._tidy(fgraph)
        return tally

    def _tidy(self, fgraph: FunctionGraph) -> None:
        """Drop what the table says about nodes and constants that are gone."""
        before, self._numbers = self._numbers, _Numbers()
        try:
            self._table.tidy(self, fgraph)
        except BaseException:
            self._numbers = before
            raise
        # The work is in proportion to what has been looked up since the last time.
        self._crowd = _crowd(len(self._table))

    def _plan(self, one: bool) -> MergePlan:
        """Look up what is noted, and all that reads what will be replaced."""
        pending, self._pending = self._pending, {}
        try:
            plan = self._table.look_up(self, self._fgraph, pending, one)
        except BaseException:
            self._pending = pending | self._pending
            raise
        # An op that is compared may do anything, also to this graph.
        self._pending = dict.fromkeys(plan.waiting) | self._pending
        self._met_kernels |= plan.met_kernels
        self._has_kernels |= plan.met_kernels
        self._n_looked_up += plan.n_looked_up
        return plan

    def take_kernels(self) -> bool:
        """Return whether the outputs of kernels are to be compared, and take them for compared.

        That looks at the whole graph. It is due once a kernel was looked up. Where there are
        kernels, it is also due once any node was, for some times, then only after so many nodes
        that the time is in proportion to these.
        """
        enough = self._n_looked_up * 8 > len(self._fgraph.apply_nodes)
        is_free = self._n_looked_up > 0 and self._n_free_comparisons > 0
        are_due = self._met_kernels or (self._has_kernels and (enough or is_free))
        if are_due:
            self._n_free_comparisons -= not (self._met_kernels or enough)
            self._met_kernels = False
            self._n_looked_up = 0
        return are_due

    def give_back_kernels(self) -> None:
        """Have the outputs of kernels compared by the next pass."""
        self._met_kernels = True

    def _can_be_refused(self, fgraph: FunctionGraph) -> bool:
        """Whether validation may refuse a graph in which equal nodes are merged."""
        tell = self._tell
        if tell is None or not tell.are_current():
            # What an edit of all merges changes has been looked up, with the inputs that it gets.
            self._tell = Listeners(fgraph, but=self)
            self._has_other_validators = any(
                type(feature).on_validate is not Feature.on_validate
                and type(feature) not in _INPLACE_VALIDATORS
                for feature in fgraph._features
            )
        if self._has_other_validators:
            return True
        handler = getattr(fgraph, "destroy_handler", None)
        return handler is not None and bool(handler._destroying_apps)

    def _replace(self, fgraph: FunctionGraph, plan: MergePlan, one: bool, tally: Tally) -> None:
        replacements = plan.replacements
        dying = [node for node, _ in plan.dying]
        if len(dying) > 1:
            dying = in_order(dying, set(dying))
        validate = one and bool(dying)
        try:
            tell = None if one else self._tell
            replace_all(fgraph, [], replacements, dying, REASON, validate=validate, tell=tell)
        except BaseException as error:
            if one:
                if not dying or not isinstance(error, InconsistencyError):
                    self._pending = dict.fromkeys(self._table.queue(plan)) | self._pending
                    raise
                self._pending.update(dict.fromkeys(dying))
                self._refuse(plan.dying)
                tally.n_refused += 1
                return
            # The graph is as it was. One by one shows which merge it is, and does the others.
            self._one_by_one = True
            self._pending = dict.fromkeys(self._table.queue(plan)) | self._pending
            if not isinstance(error, Exception):
                raise
            return
        tally.add(replacements)
        report(replacements, REASON)
        if self._pending and not one:
            # Where the feature is told all the same.
            done = set(self._table.queue(plan))
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
            self._refuse([(node, other)])
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
            for node, other in [*plan.dying, *plan.incomparable]:
                entries.append([_merges(zip(node.outputs, other.outputs, strict=True))])
            if not plan.dying:
                entries += [[_merges([pair])] for pair in plan.replacements]

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

    def _looked_up(self) -> list[Node]:
        self.schedule(self._schedule.entries)
        apply_nodes = self._fgraph.apply_nodes
        return [node for node in self._table.nodes() if node in apply_nodes]

    def representatives(self) -> list[Var]:
        """Return the constants of the graph, of equal ones the first."""
        self._look_up_constants()
        variables = self._fgraph.variables
        return [constant for constant in self._table.constants() if constant in variables]

    def constant_of(self, key: Key) -> Var | None:
        """Return the constant of the graph that others with this key are merged with."""
        self._look_up_constants()
        number = self._numbers.constants.get(key)
        constant = None if number is None else self._table.constant(number)
        return constant if constant in self._fgraph.variables else None

    def _look_up_constants(self) -> None:
        variables = self._fgraph.variables
        for node in self._pending:
            for variable in node.inputs:
                if isinstance(variable, AtomicVariable) and variable in variables:
                    self._table.representative(self, self._fgraph, variable)


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
    tally = feature.merge(fgraph)
    refused: set[tuple[Var, Var]] = set()
    try:
        due = feature.take_kernels()
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
            due = feature.take_kernels() or more.n_merged > 0
    except BaseException:
        feature.give_back_kernels()
        raise
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


class _Numbers:
    """Numbers of what is the same, for one table."""

    def __init__(self) -> None:
        self.labels: dict[type[Op] | None, int] = {}
        self.constants: dict[Key, int] = {}
        # What keys of constants tell by its identity.
        self.held: list[object] = []
        self._ops: dict[Op, int] = {}
        self._unhashable: list[tuple[Op, int]] = []
        self._n_ops = 0

    def of_op(self, op: Op) -> int:
        """Return the number of ``op`` and of its equals."""
        try:
            number = self._ops.setdefault(op, self._n_ops)
        except TypeError:
            found = (number for other, number in self._unhashable if op == other)
            number = next(found, self._n_ops)
            if number == self._n_ops:
                self._unhashable.append((op, number))
        self._n_ops = max(self._n_ops, number + 1)
        return number


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


@lru_cache(maxsize=256)
def _is_atomic(kind: type[Var]) -> tuple[bool, bool]:
    """Return whether variables of a class can be equal to others, and whether they are constants.

    There is one nominal variable of each kind already.
    """
    is_atomic = issubclass(kind, AtomicVariable) and not issubclass(kind, NominalVariable)
    return is_atomic, issubclass(kind, Constant)


def _key_of_data(type_: Type[Any], data: object, encoded: bytes | None) -> Key:
    """Return the key of a plain constant; ``encoded`` is the content of its data.

    Without content, the key holds for no longer than the data are held.
    """
    # What this class compares; hashing that takes less time than hashing the type.
    kind = (type_.dtype, type_.shape) if type(type_) is TensorType else type_
    return kind, id(data) if encoded is None else encoded


def _signature(constant: Var) -> Any:
    return cast("AtomicVariable[Any]", constant).merge_signature()


def _merges(pairs: Iterable[tuple[Var, Var]]) -> list[tuple[Var, Var, str]]:
    return [(old, new, "merge") for old, new in pairs]


def _crowd(n_nodes: int) -> int:
    """Return how many entries a table may have before those of nodes that are gone are dropped."""
    return 1000 + 4 * n_nodes


def _is_destroyed(node: Node, clients: dict[Var, list[tuple[Node, int]]]) -> bool:
    """Whether a client of its first output writes over that."""
    return any(
        position in positions
        for client, position in clients[node.outputs[0]]
        for positions in client.op.destroy_map.values()
    )
