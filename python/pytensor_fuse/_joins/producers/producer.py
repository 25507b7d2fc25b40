"""What there is to know of a kind of node that can write a stream of a join."""

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
    """Says which streams nodes of one kind can write, and makes the nodes that do.

    A new one for each graph: nodes that are alike may share what it has made.
    """

    @staticmethod
    @abstractmethod
    def produces(node: Apply[Any]) -> bool:
        """Whether ``node`` is of this kind."""

    @staticmethod
    @abstractmethod
    def refusal(
        compilation: Compilation, variable: Variable[Any, Any], dtype: str
    ) -> JoinReason | None:
        """Return why the node of ``variable`` cannot write it as ``dtype``, or does not gain."""

    @abstractmethod
    def writing(self, kernel: Apply[Any], streams: Sequence[Placed]) -> Apply[Any]:
        """Return the node that computes what ``kernel`` does, and writes streams over parts.

        Its outputs are those of ``kernel``, in their order.
        """


def is_too_small(compilation: Compilation, variable: Variable[Any, Any]) -> bool:
    """Whether a stream is known to cost less to copy than a part of the result costs to make."""
    size = n_elements(variable.type.shape)
    return size is not None and size < compilation.thresholds.min_stream_elements


def casts(dtype: str, joined: str) -> bool:
    """Whether a kernel can cast what it computes to the dtype of the result."""
    return dtype == joined or (
        not {dtype, joined} & {"float16", "bool"}
        and not dtype.startswith("complex")
        and not joined.startswith("complex")
    )
