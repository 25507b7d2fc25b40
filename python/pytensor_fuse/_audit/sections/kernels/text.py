"""Findings about kernels in prose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._audit.sections.kernels.record import rank
from pytensor_fuse._reports.text import bounded, count, size

if TYPE_CHECKING:
    from pytensor_fuse._audit.sections.kernels.record import KernelsRecord


def lines(found: KernelsRecord) -> list[str]:
    """Return the lines of the text."""
    text = notes(found)
    kernels = found.kernels
    text += bounded(
        [kernel for kernel in kernels if kernel.limited_by],
        lambda k: (
            f"limit of {found.max_operands} operands: {k.name} stays apart from "
            + ", ".join(k.limited_by[:3])
        ),
        "kernels at the limit",
    )
    by_size = sorted(kernels, key=rank)
    text += bounded(by_size, lambda kernel: f"largest: {kernel}", "kernels", 5)
    text += bounded(
        found.equal,
        lambda group: f"equal up to a renaming of inputs, {len(group)} times: {kernels[group[0]]}",
        "groups of equal kernels",
        5,
    )
    return text


def notes(found: KernelsRecord) -> list[str]:
    """Return the lines about all kernels together."""
    if not found.kernels:
        return ["no kernels"]
    if found.after_fusion is None:
        return [_summary(found)]
    after = count(found.after_fusion, "kernel")
    return [_summary(found), f"fused now, the graph would have {after}"]


def _summary(found: KernelsRecord) -> str:
    kernels = found.kernels
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
