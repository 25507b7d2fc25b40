"""Records of kernels: their costs."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from pytensor_fuse._reports.text import count, place, size, some


class KernelKind(enum.Enum):
    """The kind of a kernel's loop."""

    ELEMWISE = "Elemwise"
    INDEXED = "Elemwise that indexes or reduces"
    REDUCTION = "reduction of a fused expression"


@dataclass(frozen=True)
class KernelCost:
    """A kernel: one loop over elements.

    Attributes
    ----------
    name
        Its position in the order of the run, and its op.
    path
        The names of the enclosing nodes.
    kind
        The kind of its loop.
    scalar_ops
        The operations per element, by name, with their counts.
    reads
        The names of the arrays read, or of the nodes that compute them, seen through changes of
        their dimensions.
    arrays_read
        The number of distinct inputs, except for constants of one element.
    arrays_written
        The number of outputs, including those in place.
    bytes_read, bytes_written
        Their sizes, each array counted once; None if one is unknown. For an indexed array, only the
        selected elements count.
    operands
        The number of distinct inputs and outputs, to which the limit applies.
    limited_by
        The kernels that only the limit keeps apart from it.
    times
        How often it runs in a call of the function, if known.
    """

    name: str
    path: tuple[str, ...]
    kind: KernelKind
    scalar_ops: dict[str, int]
    reads: tuple[str, ...]
    arrays_read: int
    arrays_written: int
    bytes_read: int | None
    bytes_written: int | None
    operands: int
    limited_by: tuple[str, ...]
    times: int | None

    @property
    def scalar_nodes(self) -> int:
        """The number of operations per element."""
        return sum(self.scalar_ops.values())

    @property
    def nbytes(self) -> int | None:
        """The bytes read and written together, if both are known."""
        if self.bytes_read is None or self.bytes_written is None:
            return None
        return self.bytes_read + self.bytes_written

    @property
    def bytes_per_call(self) -> int | None:
        """The bytes read and written by all runs in a call of the function, if known."""
        if self.nbytes is None or self.times is None:
            return None
        return self.nbytes * self.times

    @property
    def operations(self) -> str:
        """The first operations with their counts, in words."""
        return some([f"{op} x{n}" if n > 1 else op for op, n in self.scalar_ops.items()], 6)

    def __str__(self) -> str:
        text = (
            f"{place(self.path, self.name)}: "
            f"{count(self.scalar_nodes, 'scalar op')} ({self.operations}), "
            f"{self.arrays_read} in ({some(self.reads, 4)}), {self.arrays_written} out"
        )
        if self.nbytes is not None:
            text += f", {size(self.bytes_read)} read, {size(self.bytes_written)} written"
        if self.times not in (1, None):
            text += f", {self.times:,} times"
        return text


def rank(kernel: KernelCost) -> tuple[int, int]:
    """Return a sort key by bytes moved, or else operations, the largest first."""
    return -(kernel.bytes_per_call or kernel.nbytes or 0), -kernel.scalar_nodes
