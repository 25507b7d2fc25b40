"""The section about Numba's cache: its findings, as text and as HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor_fuse._reports.tables import paragraphs, table
from pytensor_fuse._reports.text import bounded, place

if TYPE_CHECKING:
    from pytensor_fuse._audit.sections.cache.record import CacheCulprit


@dataclass(frozen=True, eq=False)
class CachingSection:
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

    def lines(self) -> list[str]:
        """Return the lines of the text; their number is bounded."""
        culprits = bounded(self.culprits, str, "of these")
        return [self._summary(), *(f"  {line}" for line in culprits)]

    def html(self) -> str:
        """Return the body of the section."""
        rows = [(place(c.path, c.name), c.why) for c in self.culprits]
        listed = table(("node", "why"), rows) if rows else ""
        return paragraphs([self._summary()]) + listed

    def _summary(self) -> str:
        if not self.numba:
            return "not compiled by Numba"
        if self.cacheable:
            return "other processes can load what Numba compiles"
        if not self.has_key and not self.enabled:
            return "PyTensor's numba__cache is off: each process compiles the function anew"
        unknown = "" if self.culprits else ", for a reason that its graph does not show"
        return f"each process compiles the function anew{unknown}"
