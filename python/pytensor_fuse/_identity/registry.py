"""Registries of encoders by class, which both encodings of the package use.

The two encodings answer two questions. `contents` decides whether any computation can distinguish
the data of two constants: there, 1, 1.0 and True differ. `terms` decides whether PyTensor considers
two ops or types equal; these compare their attributes as Python does, so 1, 1.0 and True are one
value there. The first encoding consists of bytes, or is None if only identity distinguishes the
data; the second consists of bytes that may refer to terms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Encoder = TypeVar("Encoder")


class Registry(dict[type, Encoder]):
    """Encoders by exact class, and a function that chooses one for any other class.

    Chosen encoders are not kept, so that classes made at run time can be collected; the function
    itself may keep those of classes that are never collected.
    """

    def __init__(self, encoders: Mapping[type, Encoder], choose: Callable[[type], Encoder]) -> None:
        super().__init__(encoders)
        self._choose = choose

    def __missing__(self, class_: type) -> Encoder:
        return self._choose(class_)
