"""Findings about kernels: their costs, and groups of equal kernels."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import Any

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


@dataclass(frozen=True)
class KernelsRecord:
    """The findings about kernels.

    Attributes
    ----------
    kernels
        The kernels of the graph in the order of the run, then those of inner graphs.
    equal
        Groups of two or more kernels that are equal up to a renaming of their inputs: the same
        expression on operands of the same dtypes and broadcast patterns. Positions in ``kernels``.
        Which input a kernel overwrites does not matter. Groups with the most operations come first.
    max_operands
        The target's limit on operands.
    after_fusion
        The number of kernels of the graph itself after fusing it now, if that is smaller.
    """

    kernels: tuple[KernelCost, ...]
    equal: tuple[tuple[int, ...], ...]
    max_operands: int
    after_fusion: int | None

    @property
    def largest(self) -> KernelCost | None:
        """The kernel that moves the most bytes in a call, or else computes the most."""
        return min(self.kernels, key=rank, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the findings in plain types, as in JSON."""
        return {
            "kernels": [
                asdict(kernel)
                | {
                    "kind": kernel.kind.name,
                    "path": list(kernel.path),
                    "scalar_nodes": kernel.scalar_nodes,
                    "reads": list(kernel.reads),
                    "limited_by": list(kernel.limited_by),
                }
                for kernel in self.kernels
            ],
            "equal": [list(group) for group in self.equal],
            "max_operands": self.max_operands,
            "after_fusion": self.after_fusion,
        }
