"""Encoders by class: the one way in which both encodings of the package find theirs.

There are two encodings because there are two questions. `contents` asks whether any computation can
tell the data of two constants apart: there, 1, 1.0 and True differ. `terms` asks whether PyTensor
takes two ops or types for equal, and these compare their attributes as Python does: there, 1, 1.0
and True are one value. The first gives bytes, or nothing where only the identity of the data tells;
the second gives bytes that may refer to terms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Encoder = TypeVar("Encoder")


class Registry(dict[type, Encoder]):
    """Encoders by exact class, and a function that chooses one for any other class.

    What it chooses is not kept, so that classes made at run time can go; it may keep what it knows
    to be safe itself.
    """

    def __init__(self, encoders: Mapping[type, Encoder], choose: Callable[[type], Encoder]) -> None:
        super().__init__(encoders)
        self._choose = choose

    def __missing__(self, class_: type) -> Encoder:
        return self._choose(class_)
