"""How types, constants and ops are written in a picture: short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.tensor.type import TensorType

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable

# Most characters of a label; what is longer ends in an ellipsis.
LABEL = 22

# Most characters of a text that could be of any length, such as a Composite or a constant.
LONGEST = 300


class Texts:
    """Texts of types and constants, each made once: many nodes share one."""

    def __init__(self) -> None:
        self._types: dict[Any, str] = {}

    def type(self, type_: Any) -> str:
        """Return dtype and static shape of a tensor, else the type as it prints."""
        try:
            if type_ not in self._types:
                self._types[type_] = _type_text(type_)
            return self._types[type_]
        except TypeError:  # Equality without a hash.
            return _type_text(type_)

    def constant(self, variable: Variable[Any, Any]) -> str:
        """Return the name of a constant, its value if that is a number, else its type."""
        if variable.name:
            return str(variable.name)
        data: Any = getattr(variable, "data", None)
        # Sparse matrices have a size too: how many values they store.
        if isinstance(data, (np.ndarray, np.generic)) and data.size == 1:
            try:
                value = data.item()
                return cut(f"{value:.6g}" if isinstance(value, float) else str(value))
            except ValueError:  # An integer of more digits than Python writes.
                pass
        return self.type(variable.type)


def _type_text(type_: Any) -> str:
    if not isinstance(type_, TensorType):
        return str(type_)
    lengths = ["?" if length is None else str(length) for length in type_.shape]
    if len(lengths) == 1:
        lengths.append("")
    return f"{type_.dtype} ({', '.join(lengths).rstrip()})"


def short(op: str) -> str:
    """Shorten the text of an op: its properties are what can be missed first."""
    head, brace, _ = op.partition("{")
    return cut(f"{head}{{\u2026}}" if brace and len(op) > LABEL else op, LABEL)


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text of at most that many characters; what is left out shows as an ellipsis."""
    return text if len(text) <= longest else text[: longest - 1] + "\u2026"
