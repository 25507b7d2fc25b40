"""Upper Cholesky factors as transposed lower ones, so that the rules need only match these.

LAPACK reads the upper triangle of a matrix for the upper factor, which is the lower triangle of the
transpose. For a symmetric matrix, it may read the lower one, so that both factors are shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.tensor.linalg.decomposition.cholesky import Cholesky, cholesky
from pytensor.tensor.linalg.solvers.psd import CholeskySolve, cho_solve

from pytensor_fuse._linalg.structure.matrices import core_of, turned, without_transposes
from pytensor_fuse._linalg.structure.symmetry import is_symmetric

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

_cholesky: Any = cholesky
_cho_solve: Any = cho_solve


def upper_cholesky(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Replace the upper factor of a matrix by the transposed lower factor of its transpose."""
    core = core_of(node)
    if type(core) is not Cholesky or core.lower:
        return None
    [matrix] = node.inputs
    if matrix.type.numpy_dtype.kind != "f":
        # The transpose of a complex factor is not conjugated.
        return None
    inner = without_transposes(matrix)[0] if matrix.type.ndim == 2 else matrix
    # The other triangle of a symmetric matrix holds the same numbers.
    read = inner if is_symmetric(fgraph, inner) else turned(matrix)
    return [_cholesky(read).mT]


def upper_cholesky_solve(_: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve with the transposed lower factor, instead of the upper one."""
    core = core_of(node)
    if type(core) is not CholeskySolve or core.lower:
        return None
    factor, right = node.inputs
    if factor.type.numpy_dtype.kind != "f":
        return None
    return [_cho_solve((turned(factor), True), right, b_ndim=core.b_ndim)]
