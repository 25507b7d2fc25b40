"""The interface of producers, the kinds of nodes that can write a stream of a join."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from pytensor_fuse._joins.lengths import n_elements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._joins.plans import Compilation, JoinReason, Stream

# A stream, and the part of the result where it belongs.
Placed = tuple["Stream", "Variable[Any, Any]"]


class Producer(ABC):
    """Decides which streams nodes of one kind can write, and makes the nodes that do.

    Each graph gets a new producer, whose nodes may share the ops that it has made.
    """

    @staticmethod
    @abstractmethod
    def produces(node: Apply[Any]) -> bool:
        """Return whether ``node`` is of this kind."""

    @staticmethod
    @abstractmethod
    def refusal(
        compilation: Compilation, variable: Variable[Any, Any], dtype: str
    ) -> JoinReason | None:
        """Return why writing ``variable`` as ``dtype`` is impossible or does not pay, or None."""

    @abstractmethod
    def writing(self, kernel: Apply[Any], streams: Sequence[Placed]) -> Apply[Any]:
        """Return a node with the same outputs as ``kernel`` that writes the streams over parts."""


def is_too_small(compilation: Compilation, variable: Variable[Any, Any]) -> bool:
    """Return whether a stream is known to cost less to copy than its part costs to make."""
    size = n_elements(variable.type.shape)
    return size is not None and size < compilation.thresholds.min_stream_elements


def casts(dtype: str, joined: str) -> bool:
    """Return whether a kernel can cast its results to the dtype of the join."""
    return dtype == joined or (
        not {dtype, joined} & {"float16", "bool"}
        and not dtype.startswith("complex")
        and not joined.startswith("complex")
    )
