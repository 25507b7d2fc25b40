"""Sparse matrices as the values of their entries and their structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from pytensor_fuse._native.lowering.registry import NoRuleError
from pytensor_fuse._native.lowering.sparse.structures import StructurePart
from pytensor_fuse._native.lowering.tensors import Tensor

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.sparse.structures import Structure
    from pytensor_fuse._native.lowering.types import Builder, Context, Index, Node, Tensors, Value

_T = TypeVar("_T")
FORMATS: Final = ("csr", "csc")


def no_element(index: Index) -> Value:
    """Raise, because the rule of an op on arrays does not apply to a sparse matrix."""
    raise NoRuleError("an element of a sparse matrix")


class SparseMatrix(Tensor):
    """A sparse matrix.

    Attributes
    ----------
    values
        The values of its entries.
    structure
        The positions of its entries.
    format
        The format, ``csr`` or ``csc``.
    """

    __slots__ = ("builder", "format", "structure", "values")

    def __init__(
        self, builder: Builder, values: Tensor, structure: Structure, storage: str
    ) -> None:
        lengths = in_order(storage, structure.n_major, structure.n_minor)
        super().__init__(values.dtype, lengths, no_element)
        self.builder = builder
        self.values = values
        self.structure = structure
        self.format = storage
        self.parts = (values, structure.indices, structure.indptr, self._shape("i64"))

    def _shape(self, dtype: str) -> StructurePart:
        builder, lengths = self.builder, self.lengths

        def at(index: Index) -> Value:
            is_first = builder.op("eq", index[0], builder.index(0))
            return builder.cast(builder.op("select", is_first, *lengths), dtype)

        shape = Tensor(dtype, [builder.index(2)], at)
        return StructurePart(shape, self.structure, self.format)

    def properties(self) -> Tensors:
        """Return the arrays that PyTensor's op returns, which has the shape in 32 bits."""
        return [*self.parts[:3], self._shape("i32")]

    @property
    def transposed(self) -> SparseMatrix:
        """The transpose, in the other format."""
        return SparseMatrix(self.builder, self.values, self.structure, other_format(self.format))

    def with_values(self, values: Tensor) -> SparseMatrix:
        """Return a matrix with the same structure and other values."""
        return SparseMatrix(self.builder, values, self.structure, self.format)

    def copied(self, context: Context, dtype: str | None = None) -> SparseMatrix:
        """Return a matrix with a copy of the values, in a dtype."""
        builder, values, dtype = context.builder, self.values, dtype or self.dtype

        def element(index: Index) -> Value:
            return builder.cast(values.at(index), dtype)

        return self.with_values(context.materialized(dtype, values.lengths, element))


def other_format(storage: str) -> str:
    """Return the format of a transpose."""
    return "csc" if storage == "csr" else "csr"


def in_order(storage: str, major: _T, minor: _T) -> tuple[_T, _T]:
    """Return a pair for the major and the minor axis in the order of rows and columns.

    The function is its own inverse: it also maps rows and columns to major and minor.
    """
    return (major, minor) if storage == "csr" else (minor, major)


def format_refusal(node: Node) -> str | None:
    """Return a message on the first unsupported format of a node's sparse variables, or None."""
    for variable in (*node.inputs, *node.outputs):
        storage = getattr(variable.type, "format", "csr")
        if storage not in FORMATS:
            return f"a sparse matrix in format {storage}"
    return None


def as_matrix(tensor: Tensor) -> SparseMatrix:
    """Return the tensor of a sparse variable as a sparse matrix."""
    if not isinstance(tensor, SparseMatrix):
        raise NoRuleError("a sparse matrix that is not known by its parts")
    return tensor
