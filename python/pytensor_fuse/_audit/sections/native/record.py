"""Findings about machine code."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor_fuse._native.explain.records import NativeState, NotNative


@dataclass(frozen=True)
class NativeRecord:
    """The findings about machine code; `pytensor_fuse.explain` gives more details.

    Attributes
    ----------
    state
        The state of the graph.
    not_native
        The obstacles to machine code for the whole graph; empty for linkers other than Numba's,
        whose graphs are never compiled to it.
    """

    state: NativeState
    not_native: tuple[NotNative, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the findings in plain types, as in JSON."""
        return {
            "state": self.state.name.lower(),
            "not_native": [asdict(one) for one in self.not_native],
        }
