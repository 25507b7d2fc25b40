"""Records of obstacles to Numba's cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor_fuse._reports.entries import plain_fields
from pytensor_fuse._reports.text import place

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Constant


@dataclass(frozen=True, eq=False)
class CacheCulprit:
    """An obstacle to Numba's storing a function.

    Attributes
    ----------
    node
        The node whose op has no key, or the first that reads the constant; None if the constant is
        an output and no node reads it.
    constant
        The constant, if it is one.
    name
        The name of the node.
    path
        The names of the nodes whose inner graphs enclose it, the outermost first.
    why
        The reason, in words.
    """

    node: Apply[Any] | None
    constant: Constant[Any] | None
    name: str
    path: tuple[str, ...]
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return the obstacle in plain types, as in JSON."""
        return plain_fields(self, without=("node", "constant"))

    def __str__(self) -> str:
        return f"{place(self.path, self.name)}: {self.why}"
