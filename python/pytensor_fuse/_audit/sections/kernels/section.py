"""The section about kernels: its findings, as text and as HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pytensor_fuse._audit.sections.kernels.record import KernelCost, rank
from pytensor_fuse._reports.entries import plain_fields
from pytensor_fuse._reports.tables import paragraphs, table
from pytensor_fuse._reports.text import bounded, count, place, size, some

_HEAD = (
    *("kernel", "scalar ops", "which", "reads", "in", "out"),
    *("read", "written", "times", "equal", "limit"),
)


@dataclass(frozen=True)
class KernelsSection:
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
        kernels = [
            plain_fields(k) | {"kind": k.kind.name, "scalar_nodes": k.scalar_nodes}
            for k in self.kernels
        ]
        return plain_fields(self) | {"kernels": kernels}

    def lines(self) -> list[str]:
        """Return the lines of the text; their number is bounded."""
        kernels = self.kernels
        return [
            *self._notes(),
            *bounded(
                [kernel for kernel in kernels if kernel.limited_by],
                lambda k: (
                    f"limit of {self.max_operands} operands: {k.name} stays apart from "
                    + ", ".join(k.limited_by[:3])
                ),
                "kernels at the limit",
            ),
            *bounded(sorted(kernels, key=rank), lambda k: f"largest: {k}", "kernels", 5),
            *bounded(
                self.equal,
                lambda same: (
                    f"equal up to a renaming of inputs, {len(same)} times: {kernels[same[0]]}"
                ),
                "groups of equal kernels",
                5,
            ),
        ]

    def html(self) -> str:
        """Return the body of the section."""
        if not self.kernels:
            return paragraphs(self._notes())
        most = max(k.bytes_per_call or 0 for k in self.kernels) or 1
        group_of = {i: number for number, group in enumerate(self.equal) for i in group}
        ranked = sorted(enumerate(self.kernels), key=lambda kernel: rank(kernel[1]))
        rows = [
            (
                place(k.path, k.name),
                k.scalar_nodes,
                k.operations,
                some(k.reads, 4),
                k.arrays_read,
                k.arrays_written,
                size(k.bytes_read),
                size(k.bytes_written),
                "?" if k.times is None else f"{k.times:,}",
                f"group {group_of[i] + 1}" if i in group_of else "",
                ", ".join(k.limited_by[:3]),
            )
            for i, k in ranked
        ]
        bars = [(k.bytes_per_call or 0) / most for _, k in ranked]
        return paragraphs(self._notes()) + table(_HEAD, rows, numbers=(1, 4, 5, 6, 7, 8), bars=bars)

    def _notes(self) -> list[str]:
        """Return the lines about all kernels together."""
        if not self.kernels:
            return ["no kernels"]
        if self.after_fusion is None:
            return [self._summary()]
        after = count(self.after_fusion, "kernel")
        return [self._summary(), f"fused now, the graph would have {after}"]

    def _summary(self) -> str:
        kernels = self.kernels
        inner = sum(bool(kernel.path) for kernel in kernels)
        known = [k.bytes_per_call for k in kernels if k.bytes_per_call is not None]
        scalar_nodes = sum(kernel.scalar_nodes for kernel in kernels)
        text = f"{count(len(kernels), 'kernel')} of {count(scalar_nodes, 'scalar op')}"
        if inner:
            text += f", {inner:,} of them in inner graphs"
        if known:
            text += f"; a call reads and writes {size(sum(known))}"
            if len(known) < len(kernels):
                text += f" in the {len(known):,} whose sizes are known"
        return text
