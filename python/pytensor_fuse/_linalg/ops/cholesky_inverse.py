"""`CholeskyInverse`: the inverse of a matrix from its Cholesky factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.type import tensor

from pytensor_fuse._linalg.ops.lapack import (
    check_given_matrix,
    check_real_matrix,
    check_square,
    lapack_functions,
)
from pytensor_fuse._linalg.ops.triangles import mirror_triangle
from pytensor_fuse._pytensor.ops.versions_of_ops import shape_inference

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable


class CholeskyInverse(Op):
    """The inverse of ``L L'`` from the lower triangular ``L``, or of ``U' U`` from the upper ``U``.

    LAPACK's potri computes one triangle, which is then copied to the other. The copy takes 3 to 5 %
    of the time (2,000 and 1,000 rows), as long as filling with zeros would.

    The other triangle of the factor is not read. A zero on its diagonal makes the result NaN, as
    does NaN, which PyTensor's Cholesky returns for a matrix that is not positive definite. A
    negative diagonal is as good as a positive one. If the matrix itself is the last input, the op
    inverts it instead of a factor that is not finite, in the same way as `MatrixInverse`: that
    raises an exception if the matrix is singular, and in Numba also if it is not finite.

    There is no gradient: the rules add this op after gradients have been taken.

    Parameters
    ----------
    lower
        Whether the factor is lower triangular.
    overwrite_a
        Whether the result may use the memory of the factor, if that is writable.
    checked
        Whether the matrix itself is the last input.
    """

    __props__ = ("lower", "overwrite_a", "checked")

    def __init__(
        self, *, lower: bool = True, overwrite_a: bool = False, checked: bool = False
    ) -> None:
        self.lower = lower
        self.overwrite_a = overwrite_a
        self.checked = checked
        self.gufunc_signature = f"(m,m){',(m,m)' if checked else ''}->(m,m)"
        if overwrite_a:
            self.destroy_map = {0: [0]}

    def make_node(self, *inputs: Variable[Any, Any]) -> Apply[Any]:
        """Return the node that inverts a matrix; the factor is the first input.

        Raises
        ------
        TypeError
            If the factor is no matrix of float32 or float64. If the matrix is given and does not
            have the type of the factor.
        """
        factor, *matrix = map(as_tensor_variable, inputs)
        check_real_matrix(factor, "the factor")
        check_given_matrix(matrix, factor, self.checked)
        inverse = tensor(shape=factor.type.shape, dtype=factor.type.dtype)
        return Apply(self, [factor, *matrix], [inverse])

    @shape_inference
    def infer_shape(self, node: Apply[Any], shapes: list[Any]) -> list[Any]:
        """Return the shape of the factor."""
        return [shapes[0]]

    def inplace_on_inputs(self, allowed_inplace_inputs: list[int]) -> Op:
        """Return the op that overwrites the factor, if allowed."""
        if 0 not in allowed_inplace_inputs:
            return self
        return CholeskyInverse(lower=self.lower, overwrite_a=True, checked=self.checked)

    def perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:
        """Invert with SciPy.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the factor is not square, or the matrix is given and singular.
        """
        factor, *matrix = inputs
        check_square(factor)
        if factor.size == 0:
            output_storage[0][0] = np.empty_like(factor)
            return
        if matrix and not np.isfinite(factor.diagonal()).all():
            output_storage[0][0] = np.linalg.inv(matrix[0])
            return
        # LAPACK is column-major. A row-major factor is the transposed factor in column-major order,
        # which belongs to the same matrix.
        by_rows = factor.flags.c_contiguous and not factor.flags.f_contiguous
        columns, lower = (factor.T, not self.lower) if by_rows else (factor, self.lower)
        [potri] = lapack_functions(factor.dtype, "potri")
        overwrite = self.overwrite_a and factor.flags.writeable
        inverse, info = potri(columns, lower=lower, overwrite_c=overwrite)
        if info != 0:
            inverse[...] = np.nan
        mirror_triangle(inverse, lower)
        output_storage[0][0] = inverse.T if by_rows else inverse


def cholesky_inverse(factor: Any, matrix: Any = None, *, lower: bool = True) -> Any:
    """Return the inverse of a matrix, or of each matrix of a batch, from its Cholesky factor.

    Parameters
    ----------
    factor
        The triangular factor, or a batch of them.
    matrix
        The matrix, if the inverse is to fail as PyTensor's own does.
    lower
        Whether the factor is lower triangular.
    """
    given = () if matrix is None else (matrix,)
    invert: Any = Blockwise(CholeskyInverse(lower=lower, checked=matrix is not None))
    return invert(factor, *given)
