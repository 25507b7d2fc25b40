"""What an audit finds about Numba's cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor_fuse._reports.text import place

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Constant


@dataclass(frozen=True, eq=False)
class CacheCulprit:
    """What keeps Numba from storing a function.

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
        The names of the nodes in whose inner graphs it is, the outermost first.
    why
        The reason, in words.
    """

    node: Apply[Any] | None
    constant: Constant[Any] | None
    name: str
    path: tuple[str, ...]
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {"name": self.name, "path": list(self.path), "why": self.why}

    def __str__(self) -> str:
        return f"{place(self.path, self.name)}: {self.why}"


@dataclass(frozen=True, eq=False)
class CachingRecord:
    """What an audit found about Numba's cache.

    Attributes
    ----------
    numba
        Whether the function was compiled by Numba. If not, nothing else is known.
    enabled
        Whether PyTensor's ``numba__cache`` is set now.
    has_key
        Whether the function had a key when it was compiled.
    culprits
        What keeps the function from being stored.
    stored
        Whether Numba could store all that it has compiled of the function, which it does at the
        first call with new types; None before any call.
    """

    numba: bool
    enabled: bool = False
    has_key: bool = False
    culprits: tuple[CacheCulprit, ...] = ()
    stored: bool | None = None

    @property
    def cacheable(self) -> bool | None:
        """Whether other processes can use what Numba compiles; None if it is not Numba."""
        if not self.numba:
            return None
        return self.has_key and not self.culprits and self.stored is not False

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {
            "numba": self.numba,
            "enabled": self.enabled,
            "cacheable": self.cacheable,
            "has_key": self.has_key,
            "stored": self.stored,
            "culprits": [culprit.to_dict() for culprit in self.culprits],
        }
