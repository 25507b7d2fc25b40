"""A reference graph: a maker of ``(inputs, outputs)`` with a maker of numbers for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph

GraphIO = tuple[list[Variable], list[Variable]]


@dataclass(frozen=True)
class Reference:
    """A named graph: ``build()`` makes it, ``values(size)`` makes numbers for its inputs.

    ``size`` is the number of elements of the arrays that the kernels work on.
    """

    name: str
    build: Callable[[], GraphIO]
    values: Callable[[int], list[np.ndarray]]

    def __str__(self) -> str:
        return self.name

    def fgraph(self) -> FunctionGraph:
        inputs, outputs = self.build()
        return FunctionGraph(inputs, outputs, clone=True)


def random_numbers() -> np.random.Generator:
    """The same ones each time."""
    return np.random.default_rng(20240517)
