"""What is decided about a join: data that planners make, and that the graph is changed by."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._joins.ops.layout import Length, Slot
    from pytensor_fuse._joins.thresholds import Thresholds
    from pytensor_fuse._pytensor.targets import Target


class JoinReason(enum.Enum):
    """Why a stream, or a whole join, is left as it is."""

    WRITTEN = "it is written into the result"
    NO_KERNEL = "nothing computes it that can write it there"
    KEPT = "it could be written there, but the join is kept"
    OTHER_CLIENTS = "something else reads it"
    IN_PLACE = "its kernel overwrites an input already"
    NOT_COMPILED = "its scalar op cannot be compiled inside a kernel"
    DTYPE = "its kernel cannot cast it to the dtype of the result"
    OPERANDS = "its kernel would have too many operands"
    SMALL = "it is too small to gain"
    FEW = "kernels would write few of its streams, which may be too small to gain"
    LENGTH = "its length depends on what another kernel of the join computes"
    WAITS = "other results of its kernel would have to wait for lengths that they do not need"
    INTERLEAVED = "its rows lie apart in the result, which is slower than to copy it there"
    NO_STREAMS = "no stream of it can be written"
    AXIS = "its axis is not known when the graph is compiled"
    DEBUG = "DebugMode takes parts along this axis for overlapping"
    REFUSED = "the graph's features refuse the change"
    BOUNDS = "the bounds of its slice are not constants from the front, or it skips elements"
    SCALARS = "to write single elements takes longer than to copy them"
    BROADCAST = "what is assigned is broadcast, or may be, or of another dtype"
    PIECE = "it is a piece of the tensor that is assigned to"
    OVERWRITES = "the tensor that is assigned to can be overwritten, which copies less"


@dataclass(frozen=True, eq=False)
class Compilation:
    """What joins are planned for.

    Attributes
    ----------
    fgraph
        The graph that is being compiled.
    target
        Who compiles its kernels.
    thresholds
        What is large enough to gain.
    """

    fgraph: FunctionGraph
    target: Target
    thresholds: Thresholds


@dataclass(frozen=True, eq=False)
class Stream:
    """One operand of a join.

    Attributes
    ----------
    variable
        The operand.
    reason
        `JoinReason.WRITTEN`, or why it is copied.
    kernel, output
        The node that computes it and which output, if it is written.
    shape
        Where the lengths of the dimensions come from: those of the kernel's output if it is
        written, else its own.
    slot
        The slice of the result that it is assigned to, if it is assigned.
    added
        What the kernel has to add to it, if anything.
    """

    variable: Variable[Any, Any]
    reason: JoinReason
    kernel: Apply[Any] | None
    output: int
    shape: tuple[Length[Variable[Any, Any]], ...]
    slot: Slot | None = None
    added: Variable[Any, Any] | None = None

    @property
    def written(self) -> bool:
        """Whether a kernel writes it."""
        return self.reason is JoinReason.WRITTEN


@dataclass(frozen=True, eq=False)
class JoinPlan:
    """What to do about one join.

    Attributes
    ----------
    node
        The Join, or the last assignment of a chain.
    axis
        Its axis.
    streams
        Its operands, those of joins that feed nothing but it in their places.
    reason
        `JoinReason.WRITTEN`, or why it stays.
    total
        Where the length comes from that the result must have, if anything is assigned.
    """

    node: Apply[Any]
    axis: int
    streams: tuple[Stream, ...]
    reason: JoinReason
    total: Length[Variable[Any, Any]] | None = None

    @property
    def eliminated(self) -> bool:
        """Whether the join is to be replaced."""
        return self.reason is JoinReason.WRITTEN


def kernel_outputs_written(
    streams: tuple[Stream, ...] | list[Stream],
) -> dict[Apply[Any], set[int]]:
    """Return which outputs of which kernels are written, in the order of the streams."""
    outputs: dict[Apply[Any], set[int]] = {}
    for stream in streams:
        if stream.kernel is not None:
            outputs.setdefault(stream.kernel, set()).add(stream.output)
    return outputs
