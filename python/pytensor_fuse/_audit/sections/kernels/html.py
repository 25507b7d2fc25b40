"""Findings about kernels as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._audit.sections.kernels.record import rank
from pytensor_fuse._audit.sections.kernels.text import notes
from pytensor_fuse._reports.tables import paragraphs, table
from pytensor_fuse._reports.text import place, size, some

if TYPE_CHECKING:
    from pytensor_fuse._audit.sections.kernels.record import KernelsRecord

_HEAD = (
    *("kernel", "scalar ops", "which", "reads", "in", "out"),
    *("read", "written", "times", "equal", "limit"),
)


def html(found: KernelsRecord) -> str:
    """Return the body of the section."""
    if not found.kernels:
        return paragraphs(notes(found))
    most = max(k.bytes_per_call or 0 for k in found.kernels) or 1
    group_of = {i: number for number, group in enumerate(found.equal) for i in group}
    ranked = sorted(enumerate(found.kernels), key=lambda kernel: rank(kernel[1]))
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
    return paragraphs(notes(found)) + table(_HEAD, rows, numbers=(1, 4, 5, 6, 7, 8), bars=bars)
