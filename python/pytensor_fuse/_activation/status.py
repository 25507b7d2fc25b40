"""The status of features: their states, and the reasons why some are off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytensor_fuse._accelerators.record import Gain

# The length of the longest name of a part.
_WIDTH = 20


@dataclass(frozen=True)
class FeatureStatus:
    """Whether a feature is on.

    Attributes
    ----------
    name
        The name, as for `enable`.
    title
        A description.
    is_wanted
        Whether it has been switched on.
    is_on
        Whether its changes are in effect.
    reason
        Why it is off although it has been switched on; None if there is no such reason.
    replaces
        The parts of PyTensor that it replaces while it is on.
    parts
        Its parts that can be switched separately, by name.
    gain
        Its measured gain, if known: it was measured once, on another machine, not in this
        process.
    """

    name: str
    title: str
    is_wanted: bool
    is_on: bool
    reason: str | None
    replaces: tuple[str, ...]
    parts: Mapping[str, FeatureStatus] = field(default_factory=dict)
    gain: Gain | None = None

    def __str__(self) -> str:
        state = "on" if self.is_on else "off"
        why = f"\n    {self.reason}" if self.is_wanted and self.reason is not None else ""
        parts = "".join(f"\n    {part}" for part in self.parts.values())
        gain = "" if self.gain is None else f" ({self.gain})"
        return f"{self.name:<{_WIDTH}} {state:<4} {self.title}{gain}{why}{parts}"


class Status(Mapping[str, FeatureStatus]):
    """The features by name, in the order in which they are switched on; prints as a table."""

    def __init__(self, features: Iterable[FeatureStatus]) -> None:
        self._features = {feature.name: feature for feature in features}

    def __getitem__(self, name: str) -> FeatureStatus:
        return self._features[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._features)

    def __len__(self) -> int:
        return len(self._features)

    def __str__(self) -> str:
        return "\n".join(map(str, self.values()))

    __repr__ = __str__
