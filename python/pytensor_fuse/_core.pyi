"""The Rust core. Ids are dense, from 0."""

from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from pytensor.graph.basic import Apply, Variable

__version__: str

__all__ = [
    "ERROR_KINDS",
    "AncestorSets",
    "ContractionError",
    "CycleError",
    "EdgeError",
    "Extraction",
    "FusedClusters",
    "Graph",
    "GraphError",
    "IdError",
    "MemoryLimitError",
    "__version__",
    "extract",
    "plan_arrays",
    "plan_extraction",
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
class Extraction:
    @property
    def nodes(self) -> list[Apply[Any]]: ...
    @property
    def variables(self) -> list[Variable[Any, Any]]: ...
    @property
    def dtypes(self) -> list[str]: ...
    @property
    def signatures(self) -> list[int]: ...
    def inputs(self, node: int) -> list[int]: ...
    def outputs(self, node: int) -> list[int]: ...
    def dtype(self, variable: int) -> int: ...
    def examples(self) -> list[Apply[Any]]: ...
    def array_constants(self) -> list[tuple[int, Any]]: ...
    def same_objects(self, other: Extraction) -> bool: ...
    def __len__(self) -> int: ...

@final
class FusedClusters:
    def clusters(self) -> list[tuple[list[int], list[int], list[int]]]: ...
    def fused_nodes(self) -> list[int]: ...
    @property
    def before(self) -> tuple[int, int]: ...
    @property
    def after(self) -> tuple[int, int]: ...
    @property
    def n_fusable(self) -> int: ...
    def kernels(
        self, extraction: Extraction, kinds: Sequence[int], dtype_codes: Sequence[int]
    ) -> list[tuple[bytes, list[int], list[int], list[int]]]: ...
    def explain(self, a: int, b: int) -> tuple[str, list[int], int]: ...

def extract(
    outputs: Iterable[Variable[Any, Any]],
    typed_op: type,
    kind: str,
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
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], tuple[int, int], tuple[int, int]]: ...
