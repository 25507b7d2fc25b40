"""`LUInverse`: the inverse of a matrix from its LU factorization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.type import tensor

from pytensor_fuse._linalg.ops.lapack import (
    are_rows,
    check_given_matrix,
    check_pivots,
    check_real_matrix,
    check_square,
    lapack_functions,
)
from pytensor_fuse._linalg.ops.symmetric_lu import LEAST_ROWS, inverse_of_symmetric
from pytensor_fuse._pytensor.ops.versions_of_ops import shape_inference

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable

WRONG_PIVOTS = "the pivots are not those of an LU factorization of this matrix"


class LUInverse(Op):
    """The inverse of a matrix from the outputs of PyTensor's `LUFactor`: factors and pivots.

    A zero on the diagonal of the upper factor makes the result NaN, as does NaN, which LUFactor
    returns for a singular matrix. If the matrix itself is the last input, the op inverts it instead
    of factors that are not finite, in the same way as `MatrixInverse`: that raises an exception if
    the matrix is singular, and in Numba also if it is not finite.

    There is no gradient: the rules add this op after gradients have been taken.

    Parameters
    ----------
    overwrite_a
        Whether the result may use the memory of the packed factors, if that is writable.
    checked
        Whether the matrix itself is the last input.
    symmetric
        Whether the matrix is symmetric: one triangle of the inverse is computed, in half of the
        operations, and copied to the other.
    """

    __props__ = ("overwrite_a", "checked", "symmetric")

    def __init__(
        self, *, overwrite_a: bool = False, checked: bool = False, symmetric: bool = False
    ) -> None:
        self.overwrite_a = overwrite_a
        self.checked = checked
        self.symmetric = symmetric
        self.gufunc_signature = f"(m,m),(m){',(m,m)' if checked else ''}->(m,m)"
        if overwrite_a:
            self.destroy_map = {0: [0]}

    def make_node(self, *inputs: Variable[Any, Any]) -> Apply[Any]:
        """Return the node that inverts a matrix from its packed factors and pivots.

        Raises
        ------
        TypeError
            If the factors are no matrix of float32 or float64, or the pivots no vector of integers.
            If the matrix is given and does not have the type of the factors.
        """
        packed, pivots, *matrix = map(as_tensor_variable, inputs)
        check_real_matrix(packed, "the packed factors")
        check_pivots(pivots)
        check_given_matrix(matrix, packed, self.checked)
        inverse = tensor(shape=packed.type.shape, dtype=packed.type.dtype)
        return Apply(self, [packed, pivots, *matrix], [inverse])

    @shape_inference
    def infer_shape(self, node: Apply[Any], shapes: list[Any]) -> list[Any]:
        """Return the shape of the packed factors."""
        return [shapes[0]]

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        """Return the op that overwrites the packed factors, if allowed."""
        if 0 not in allowed_inplace_inputs:
            return self
        return LUInverse(overwrite_a=True, checked=self.checked, symmetric=self.symmetric)

    def perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:
        """Invert with SciPy.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the factors are not square, or the matrix is given and singular.
        ValueError
            If the number of pivots is wrong, or they are no row numbers.
        """
        packed, pivots, *matrix = inputs
        check_square(packed)
        n = len(packed)
        if len(pivots) != n or not are_rows(pivots, n):
            raise ValueError(WRONG_PIVOTS)
        if n == 0:
            output_storage[0][0] = np.empty_like(packed)
            return
        if matrix and not np.isfinite(packed.diagonal()).all():
            output_storage[0][0] = np.linalg.inv(matrix[0])
            return
        overwrite = self.overwrite_a and packed.flags.writeable
        if self.symmetric and n >= LEAST_ROWS:
            output_storage[0][0] = inverse_of_symmetric(packed, pivots, overwrite=overwrite)
            return
        getri, getri_lwork = lapack_functions(packed.dtype, "getri", "getri_lwork")
        # With less memory than it requests, it works column by column.
        lwork, _ = getri_lwork(n)
        inverse, info = getri(packed, pivots, lwork=int(lwork.real), overwrite_lu=overwrite)
        if info != 0:
            inverse[...] = np.nan
        output_storage[0][0] = inverse


def lu_inverse(packed: Any, pivots: Any, matrix: Any = None, *, symmetric: bool = False) -> Any:
    """Return the inverse of a matrix, or of each matrix of a batch, from its LU factorization.

    Parameters
    ----------
    packed, pivots
        The result of `pytensor.tensor.linalg.lu_factor`.
    matrix
        The matrix, if the inverse is to fail as PyTensor's own does.
    symmetric
        Whether the matrix is symmetric.
    """
    given = () if matrix is None else (matrix,)
    invert: Any = Blockwise(LUInverse(checked=matrix is not None, symmetric=symmetric))
    return invert(packed, pivots, *given)
