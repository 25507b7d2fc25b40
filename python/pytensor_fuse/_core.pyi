"""The Rust core. Ids are dense, from 0."""

from collections.abc import Iterable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from pytensor.graph.basic import Apply, Variable

__version__: str

__all__: list[str]

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
    @property
    def before(self) -> tuple[int, int]: ...
    @property
    def after(self) -> tuple[int, int]: ...
    @property
    def order(self) -> str: ...
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
