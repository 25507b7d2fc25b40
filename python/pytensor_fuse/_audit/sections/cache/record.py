"""Findings about Numba's cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
        return {"name": self.name, "path": list(self.path), "why": self.why}

    def __str__(self) -> str:
        return f"{place(self.path, self.name)}: {self.why}"


@dataclass(frozen=True, eq=False)
class CachingRecord:
    """The findings about Numba's cache.

    Attributes
    ----------
    numba
        Whether the function was compiled by Numba. If not, nothing else is known.
    enabled
        Whether PyTensor's ``numba__cache`` is set now.
    has_key
        Whether the function had a key when it was compiled.
    culprits
        The obstacles to storing the function.
    stored
        Whether Numba could store all its compilations of the function, which happen at the first
        call with new types; None before any call.
    """

    numba: bool
    enabled: bool = False
    has_key: bool = False
    culprits: tuple[CacheCulprit, ...] = ()
    stored: bool | None = None

    @property
    def cacheable(self) -> bool | None:
        """Whether other processes can reuse Numba's compilation; None without Numba."""
        if not self.numba:
            return None
        return self.has_key and not self.culprits and self.stored is not False

    def to_dict(self) -> dict[str, Any]:
        """Return the findings in plain types, as in JSON."""
        return {
            "numba": self.numba,
            "enabled": self.enabled,
            "cacheable": self.cacheable,
            "has_key": self.has_key,
            "stored": self.stored,
            "culprits": [culprit.to_dict() for culprit in self.culprits],
        }
