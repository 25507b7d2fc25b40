"""What an audit finds about machine code."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor_fuse._native.explain.records import NativeState, NotNative


@dataclass(frozen=True)
class NativeRecord:
    """What an audit found about machine code; `explain_native` says more.

    Attributes
    ----------
    state
        What became of the graph, as a `NativeState`.
    not_native
        What keeps it from being machine code as a whole; empty for other linkers than Numba's,
        whose graphs never become it.
    """

    state: NativeState
    not_native: tuple[NotNative, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {
            "state": self.state.name.lower(),
            "not_native": [asdict(one) for one in self.not_native],
        }
