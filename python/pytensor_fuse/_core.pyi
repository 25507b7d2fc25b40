"""The Rust core. Ids are dense, from 0."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Never, Protocol, Self, SupportsIndex, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from typing_extensions import disjoint_base

__version__: str

__all__ = [
    "ERROR_KINDS",
    "AncestorSets",
    "ContractionError",
    "CycleError",
    "EdgeError",
    "Extraction",
    "FlatGraph",
    "FusedClusters",
    "Graph",
    "GraphError",
    "GraphParts",
    "HashConsTable",
    "IdError",
    "MemoryLimitError",
    "MergePlan",
    "MergeTable",
    "NativeFunction",
    "NodeOrder",
    "Term",
    "Terms",
    "__version__",
    "call_listeners",
    "extract",
    "in_order",
    "layered_layout",
    "native_regions",
    "place_buffers",
    "plan_arrays",
    "plan_extraction",
    "remove_reader",
    "schedule_loops",
    "string_together",
    "walk",
    "walk_parts",
]

ERROR_KINDS: tuple[str, ...]

_Ids: TypeAlias = NDArray[np.integer] | Sequence[SupportsIndex]

class GraphError(ValueError):
    kind: str

class EdgeError(GraphError):
    edge: int

class IdError(GraphError, IndexError):
    id: int
    limit: int

class CycleError(GraphError):
    nodes: tuple[int, ...]

class MemoryLimitError(GraphError, MemoryError):
    needed: int
    limit: int

class ContractionError(GraphError):
    through: int

@final
class Graph:
    def __new__(cls, n_nodes: SupportsIndex, sources: _Ids, targets: _Ids) -> Graph: ...
    @property
    def n_nodes(self) -> int: ...
    @property
    def n_edges(self) -> int: ...
    def successors(self, node: SupportsIndex) -> NDArray[np.uint32]: ...
    def predecessors(self, node: SupportsIndex) -> NDArray[np.uint32]: ...
    def transposed(self) -> Graph: ...
    def toposort(self, key: _Ids | None = None) -> NDArray[np.uint32]: ...
    def is_convex(self, nodes: _Ids) -> bool: ...
    def convex_subgraphs(self, labels: _Ids) -> NDArray[np.uint32]: ...
    def ancestor_sets(self, memory_limit: SupportsIndex | None = None) -> AncestorSets: ...

@final
class AncestorSets:
    def __new__(cls, graph: Graph, memory_limit: SupportsIndex | None = None) -> AncestorSets: ...
    @property
    def n_nodes(self) -> int: ...
    @property
    def memory_used(self) -> int: ...
    def is_ancestor(self, ancestor: SupportsIndex, node: SupportsIndex) -> bool: ...
    def ancestors(self, node: SupportsIndex) -> NDArray[np.uint32]: ...
    def descendants(self, node: SupportsIndex) -> NDArray[np.uint32]: ...
    def union(self, nodes: _Ids) -> NDArray[np.uint32]: ...
    def can_contract(self, nodes: _Ids) -> bool: ...
    def contract(self, nodes: _Ids) -> None: ...

@final
class Term:
    @property
    def id(self) -> int: ...
    @property
    def digest(self) -> bytes | None: ...
    @property
    def has_digest(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Terms:
    @property
    def ids(self) -> NDArray[np.int64]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Term: ...

_Terms: TypeAlias = Terms | list[Term] | _Ids

@final
class HashConsTable:
    def __new__(cls) -> HashConsTable: ...
    def compound(self, content: bytes, children: Sequence[Term] = ...) -> Term: ...
    def opaque(self) -> Term: ...
    def input(self, position: int, type_: Term) -> Term: ...
    def apply(self, op: Term, types: Sequence[Term], inputs: Sequence[Term]) -> Term: ...
    def output(self, apply: Term, index: int) -> Term: ...
    def graph(self, inputs: Sequence[Term], outputs: Sequence[Term]) -> Term: ...
    def symbols(self, contents: Sequence[bytes]) -> Terms: ...
    def intern(
        self,
        *,
        leaves: _Terms,
        ops: _Terms,
        types: _Terms,
        node_ops: _Ids,
        input_offsets: _Ids,
        inputs: _Ids,
        type_offsets: _Ids,
        output_types: _Ids,
    ) -> Terms: ...
    def digest(self, term: int) -> bytes | None: ...
    def before_fork(self) -> None: ...
    def after_fork(self) -> None: ...
    def check(self) -> None: ...
    def stats(self) -> dict[str, int]: ...
    def __len__(self) -> int: ...

_Node: TypeAlias = tuple[int, Sequence[int], Sequence[int]]

@final
class FlatGraph:
    def __new__(
        cls,
        inputs: Sequence[int],
        n_constants: int,
        nodes: Sequence[_Node],
        outputs: Sequence[int],
    ) -> FlatGraph: ...
    def parts(
        self,
    ) -> tuple[list[int], int, list[tuple[int, list[int], list[int]]], list[int]]: ...
    def nodes(self) -> list[tuple[int, list[int], list[int]]]: ...
    def substitute(
        self,
        table: HashConsTable,
        leaves: Sequence[Term],
        masks: Sequence[int],
        ops: Sequence[Term],
        types: Sequence[Term],
    ) -> list[tuple[Term, int]]: ...
    def intern(
        self,
        table: HashConsTable,
        ops: Sequence[Term],
        types: Sequence[Term],
        constants: Sequence[Term],
        fold: bool,
    ) -> tuple[Term, FlatGraph]: ...
    def __len__(self) -> int: ...

# The rows of a graph, the ops, types and constants that these refer to, and variables that have no
# place in a graph.
_Walked: TypeAlias = tuple[
    FlatGraph, list[Op], list[Type[Any]], list[Constant[Any]], list[Variable[Any, Any]]
]

def walk(
    inputs: Iterable[Variable[Any, Any]],
    outputs: Iterable[Variable[Any, Any]],
    constant: type,
    plain_type: type,
    plain_ops: dict[type[Op], tuple[str, ...]] | None = None,
) -> tuple[FlatGraph, list[Op], list[Type[Any]], list[Constant[Any]], list[Variable[Any, Any]]]: ...

@final
class GraphParts:
    @property
    def nodes(self) -> list[Apply[Any]]: ...
    @property
    def variables(self) -> list[Variable[Any, Any]]: ...
    @property
    def constants(self) -> list[Constant[Any]]: ...
    @property
    def names(self) -> list[tuple[int, str]]: ...
    @property
    def noted_variables(self) -> list[Variable[Any, Any]]: ...
    @property
    def noted_nodes(self) -> list[Apply[Any]]: ...

def walk_parts(
    inputs: Iterable[Variable[Any, Any]],
    outputs: Iterable[Variable[Any, Any]],
    constant: type,
    plain_type: type,
    plain_ops: dict[type[Op], tuple[str, ...]],
    harmless: tuple[str, str],
) -> tuple[_Walked, GraphParts]: ...
def in_order(roots: Sequence[Apply[Any] | None], within: set[Apply[Any]]) -> list[Apply[Any]]: ...

class _MergeRules(Protocol):
    """What is the same. Numbers are below 2^31."""

    def describe_op(self, op: Op) -> tuple[int, bool]: ...
    def number_of_op(self, op: Op) -> int: ...
    def constant_number(self, variable: Variable[Any, Any]) -> int | None: ...
    def may_merge(self, node: Apply[Any], other: Apply[Any]) -> bool: ...
    def direction(self, node: Apply[Any], other: Apply[Any]) -> int: ...

@final
class MergeTable:
    def __new__(
        cls, plain_ops: dict[type[Op], tuple[str, ...]], result: type[Op]
    ) -> MergeTable: ...
    def look_up(
        self,
        rules: _MergeRules,
        fgraph: FunctionGraph,
        pending: dict[Apply[Any], None],
        one_at_a_time: bool,
    ) -> MergePlan: ...
    def tidy(self, rules: _MergeRules, fgraph: FunctionGraph) -> None: ...
    def representative(
        self, rules: _MergeRules, fgraph: FunctionGraph, variable: Variable[Any, Any]
    ) -> Variable[Any, Any]: ...
    def constant(self, number: int) -> Variable[Any, Any] | None: ...
    def __len__(self) -> int: ...

@final
class MergePlan:
    @property
    def replacements(self) -> list[tuple[Variable[Any, Any], Variable[Any, Any]]]: ...
    @property
    def dying(self) -> list[tuple[Apply[Any], Apply[Any]]]: ...
    @property
    def incomparable(self) -> list[tuple[Apply[Any], Apply[Any]]]: ...
    @property
    def n_looked_up(self) -> int: ...
    @property
    def queue(self) -> list[Apply[Any]]: ...
    @property
    def met_kernels(self) -> bool: ...

@final
class Extraction:
    @property
    def nodes(self) -> list[Apply[Any]]: ...
    @property
    def variables(self) -> list[Variable[Any, Any]]: ...
    @property
    def dtypes(self) -> list[str]: ...
    @property
    def signatures(self) -> list[int]: ...
    @property
    def results(self) -> list[int]: ...
    def inputs(self, node: int) -> list[int]: ...
    def outputs(self, node: int) -> list[int]: ...
    def dtype(self, variable: int) -> int: ...
    def examples(self) -> list[Apply[Any]]: ...
    def signature_keys(self) -> list[bytes]: ...
    def array_constants(self) -> list[tuple[int, Any]]: ...
    def same_objects(self, other: Extraction) -> bool: ...
    def __len__(self) -> int: ...

@final
class FusedClusters:
    def clusters(self) -> list[tuple[list[int], list[int], list[int]]]: ...
    def fused_nodes(self) -> list[int]: ...
    def problem(self) -> dict[str, Any]: ...
    @property
    def before(self) -> tuple[int, int]: ...
    @property
    def after(self) -> tuple[int, int]: ...
    @property
    def bound(self) -> tuple[int, int]: ...
    @property
    def strategy(self) -> str | None: ...
    @property
    def exhausted(self) -> tuple[str, ...]: ...
    @property
    def n_fusable(self) -> int: ...
    def kernels(
        self,
        extraction: Extraction,
        table: HashConsTable,
        ops: Sequence[Term | None],
        types: Sequence[Term],
    ) -> list[tuple[Term, list[int], list[int], list[int]]]: ...
    def explain_pairs(
        self, pairs: Sequence[tuple[int, int]]
    ) -> list[tuple[str, list[int], int]]: ...

def layered_layout(
    widths: Sequence[float],
    heights: Sequence[float],
    sources: _Ids,
    targets: _Ids,
    gaps: tuple[float, float, float],
) -> tuple[
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.uint32],
    NDArray[np.uint32],
    NDArray[np.uint32],
    float,
]: ...
def extract(
    outputs: Iterable[Variable[Any, Any]],
    typed_op: type,
    attribute: str,
    constant: type,
    order: Iterable[Apply[Any]] | None = None,
) -> Extraction: ...
def plan_extraction(
    extraction: Extraction,
    fusable: Sequence[bool],
    strict: Sequence[bool],
    uniform: Sequence[int],
    orderings: Sequence[tuple[int, int]],
    max_operands: int,
    effort: int | None = None,
) -> FusedClusters: ...
def plan_arrays(
    *,
    n_variables: int,
    input_offsets: NDArray[np.uint32],
    inputs: NDArray[np.uint32],
    output_offsets: NDArray[np.uint32],
    outputs: NDArray[np.uint32],
    groups: NDArray[np.int32],
    links: NDArray[np.int32],
    constants: NDArray[np.bool_],
    results: NDArray[np.bool_],
    max_operands: int,
    orderings: Sequence[tuple[int, int]] = ...,
    strict: NDArray[np.bool_] | None = None,
    effort: int | None = None,
) -> tuple[
    NDArray[np.uint32], NDArray[np.uint32], tuple[int, int], tuple[int, int], tuple[int, int] | None
]: ...

@final
class NodeOrder:
    def __new__(cls, outputs: list[Variable[Any, Any]], constant: type) -> NodeOrder: ...
    @property
    def nodes(self) -> list[Apply[Any]]: ...
    def still_is(self, outputs: list[Variable[Any, Any]]) -> bool: ...

def string_together(
    inputs: Sequence[Sequence[int]],
    outputs: Sequence[int | None],
    owners: Sequence[int | None],
    is_increment: Sequence[bool],
    readers: Sequence[Sequence[tuple[int, int]]],
    sums: Sequence[int],
) -> tuple[
    int,
    list[int],
    list[int],
    list[int],
    list[list[int]],
    list[int | None],
    list[list[int]],
    list[list[tuple[int, int]]],
]: ...
def call_listeners(
    listeners: tuple[Feature, ...],
    name: str,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any] | None,
    features: list[Feature],
    expected: list[Feature],
    seconds: dict[Feature, float],
) -> int | None: ...
def remove_reader(
    readers: list[tuple[Apply[Any], int]], node: Apply[Any], position: int
) -> bool: ...

_Output: TypeAlias = (
    tuple[Literal["fresh"], str | np.dtype[Any], int]
    | tuple[Literal["input"], int]
    | tuple[Literal["output"], int]
)

@disjoint_base
class NativeFunction:
    def __new__(
        cls,
        address: int,
        owner: object,
        inputs: Sequence[tuple[str | np.dtype[Any], Sequence[int]]],
        constants: Sequence[NDArray[Any]],
        outputs: Sequence[_Output],
        fail: Callable[[int, tuple[int, ...]], BaseException],
        destroyed: Sequence[int] = ...,
    ) -> Self: ...
    @property
    def address(self) -> int: ...
    @property
    def n_inputs(self) -> int: ...
    @property
    def n_outputs(self) -> int: ...
    def bind(
        self,
        input_cells: Sequence[list[Any]],
        output_cells: Sequence[list[Any]],
        n_arguments: int | None = None,
    ) -> None: ...
    def __call__(self, *args: Never, **kwargs: Never) -> list[Any]: ...
    def call(self, args: tuple[Any, ...] | list[Any]) -> list[Any]: ...
    def call_checked(self, args: tuple[Any, ...]) -> list[Any] | None: ...

def schedule_loops(
    labels: _Ids, froms: _Ids, tos: _Ids, can_fuse: Sequence[bool] | NDArray[np.bool_]
) -> list[int]: ...
def place_buffers(
    sizes: _Ids, first: _Ids, last: _Ids, alignment: SupportsIndex
) -> tuple[list[int], int]: ...
def native_regions(
    n_nodes: SupportsIndex,
    froms: _Ids,
    tos: _Ids,
    is_native: Sequence[bool] | NDArray[np.bool_],
) -> list[int]: ...
