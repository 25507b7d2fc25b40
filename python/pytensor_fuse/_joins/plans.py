"""Plans of joins: the planners' decisions, which the changes of the graph follow."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._joins.ops.layout import Length, Slot
    from pytensor_fuse._joins.thresholds import Thresholds
    from pytensor_fuse._pytensor.ops.targets import Target


class JoinReason(enum.Enum):
    """Reasons why a stream is copied, or a whole join is kept."""

    WRITTEN = "it is written into the result"
    NO_KERNEL = "no kernel that can write it there computes it"
    KEPT = "it could be written there, but the join is kept"
    OTHER_CLIENTS = "something else reads it"
    IN_PLACE = "its kernel overwrites an input already"
    NOT_COMPILED = "its scalar op cannot be compiled inside a kernel"
    DTYPE = "its kernel cannot cast it to the dtype of the result"
    OPERANDS = "its kernel would have too many operands"
    SMALL = "it is too small to gain"
    FEW = "kernels would write few of its streams, which may be too small to gain"
    LENGTH = "its length depends on the result of another kernel of the join"
    WAITS = "other results of its kernel would have to wait for lengths that they do not need"
    INTERLEAVED = "its rows lie apart in the result: writing them is slower than copying it there"
    NO_STREAMS = "no stream of it can be written"
    AXIS = "its axis is unknown when the graph is compiled"
    DEBUG = "DebugMode considers parts along this axis overlapping"
    REFUSED = "the graph's features refuse the change"
    BOUNDS = "the bounds of its slice are not constants from the front, or it skips elements"
    SCALARS = "writing single elements takes longer than copying them"
    BROADCAST = "the assigned value is broadcast, or may be, or has another dtype"
    PIECE = "it is a piece of the tensor that is assigned to"
    OVERWRITES = "the tensor that is assigned to can be overwritten, which copies less"


@dataclass(frozen=True, eq=False)
class Compilation:
    """The context in which joins are planned.

    Attributes
    ----------
    fgraph
        The graph that is being compiled.
    target
        The compiler of its kernels.
    thresholds
        The sizes from which elimination pays.
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
        If it is written, the node that computes it, and the position of the output.
    shape
        The sources of the lengths of the dimensions: those of the kernel's output if it is written,
        else its own.
    slot
        The slice of the result that it is assigned to, if it is assigned.
    added
        The variable that the kernel has to add to it, if any.
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
        """Whether a kernel writes it into the result."""
        return self.reason is JoinReason.WRITTEN


@dataclass(frozen=True, eq=False)
class JoinPlan:
    """The decision on one join.

    Attributes
    ----------
    node
        The Join, or the last assignment of a chain.
    axis
        Its axis.
    streams
        Its operands, with nested joins that only this join reads expanded.
    reason
        `JoinReason.WRITTEN`, or why the join is kept.
    total
        The source of the required length of the result, for assignments.
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
    """Return the written outputs of each kernel, in the order of the streams."""
    outputs: dict[Apply[Any], set[int]] = {}
    for stream in streams:
        if stream.kernel is not None:
            outputs.setdefault(stream.kernel, set()).add(stream.output)
    return outputs
