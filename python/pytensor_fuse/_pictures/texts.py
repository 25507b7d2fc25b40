"""Short texts of types, constants and ops in a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.tensor.type import TensorType

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable

# The maximum length of a label; longer ones end in an ellipsis.
LABEL = 22

# The maximum length of texts that may be of any length, such as those of Composites and constants.
LONGEST = 300


class Texts:
    """A cache of the texts of types and constants, which many nodes share."""

    def __init__(self) -> None:
        self._types: dict[Any, str] = {}

    def type(self, type_: Any) -> str:
        """Return dtype and static shape of a tensor type, else the printed type."""
        try:
            if type_ not in self._types:
                self._types[type_] = _type_text(type_)
            return self._types[type_]
        except TypeError:  # An unhashable type.
            return _type_text(type_)

    def constant(self, variable: Variable[Any, Any]) -> str:
        """Return the name of a constant, its value if that is a number, else its type."""
        if variable.name:
            return str(variable.name)
        data: Any = getattr(variable, "data", None)
        # The size of a sparse matrix is its number of stored values.
        if isinstance(data, (np.ndarray, np.generic)) and data.size == 1:
            try:
                value = data.item()
                return cut(f"{value:.6g}" if isinstance(value, float) else str(value))
            except ValueError:  # The integer exceeds Python's limit on digits.
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
    """Shorten the text of an op; the properties in braces go first."""
    head, brace, _ = op.partition("{")
    return cut(f"{head}{{\u2026}}" if brace and len(op) > LABEL else op, LABEL)


def cut(text: str, longest: int = LONGEST) -> str:
    """Cut a text to a length, with an ellipsis in place of the rest."""
    return text if len(text) <= longest else text[: longest - 1] + "\u2026"
