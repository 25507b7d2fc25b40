"""Names of unknown ops, including scalar ops in kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.compile.ops import FromFunctionOp
from pytensor.scalar.basic import BinaryScalarOp, Composite, ScalarOp, UnaryScalarOp
from pytensor.tensor.blockwise import Blockwise

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCALAR_BASES = (UnaryScalarOp, BinaryScalarOp)


def class_name(op: Any) -> str:
    """Return the class of an op with its module, or the name of a function made into an op."""
    if isinstance(op, Blockwise):
        return f"Blockwise of {class_name(op.core_op)}"
    if isinstance(op, FromFunctionOp):
        return str(op)
    return f"{type(op).__module__}.{type(op).__qualname__}"


class UnknownScalars:
    """The unknown scalar ops in kernels and reductions: neither PyTensor's nor ours."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, tuple[str, ...]]] = {}

    def of(self, op: Any) -> tuple[str, ...]:
        """Return the names of the unknown scalar ops in an op."""
        scalar_op = getattr(op, "scalar_op", None)
        if not isinstance(scalar_op, ScalarOp):
            return ()
        number = id(scalar_op)
        if number not in self._known:
            self._known[number] = scalar_op, tuple(dict.fromkeys(_unknown_scalars(scalar_op)))
        return self._known[number][1]


def _unknown_scalars(scalar_op: Any) -> Iterator[str]:
    if isinstance(scalar_op, Composite):
        for node in scalar_op.fgraph.apply_nodes:
            yield from _unknown_scalars(node.op)
    elif not any(
        f"{base.__module__}.".startswith("pytensor.")
        for base in type(scalar_op).__mro__
        if base not in ScalarOp.__mro__ and base not in _SCALAR_BASES
    ):
        yield f"{class_name(scalar_op)} (scalar)"
