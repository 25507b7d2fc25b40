"""Data of constants in the inner graphs of ops, which the graphs of all functions share.

PyTensor has each inner graph once, and so its constants: somebody's arrays, who may write to them.
What was made of a graph is of use only as long as nobody has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Constant

from pytensor_fuse._identity.contents import data_content
from pytensor_fuse._pytensor.inner_graphs import graphs_inside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytensor.graph.op import Op


def inner_constants(ops: Iterable[Op]) -> Iterator[Constant[Any]]:
    """Yield the constants in the inner graphs of ops, and in those of the ops there.

    Those of scalars are left out: nobody can write to them.
    """
    for graph in graphs_inside(ops):
        yield from (one for one in graph.variables if isinstance(one, Constant))


class Contents:
    """What was in the data of constants at some time.

    Parameters
    ----------
    constants
        The constants.
    """

    def __init__(self, constants: Iterable[Constant[Any]]) -> None:
        self._of_data = [(one.data, data_content(one.data)) for one in constants]

    def are_known(self) -> bool:
        """Whether it can be told of all data if they are changed."""
        return all(content is not None for _, content in self._of_data)

    def told(self) -> list[tuple[bytes | None, Any]]:
        """Return what was in the data, in the order of the constants, and how arrays lie."""
        return [(content, getattr(data, "strides", None)) for data, content in self._of_data]

    def arrays(self) -> list[np.ndarray[Any, Any]]:
        """Return the arrays among the data."""
        return [data for data, _ in self._of_data if isinstance(data, np.ndarray)]

    def are_the_same(self) -> bool:
        """Whether the data are what they were, as far as that can be told."""
        return all(data_content(data) == content for data, content in self._of_data)
