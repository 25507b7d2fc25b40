"""Constants in the inner graphs of ops, whose data the graphs of all functions share.

PyTensor stores each inner graph once, and so its constants. Their arrays belong to the program,
which may write to them. Compiled results for a graph are valid only as long as it has not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pytensor_fuse._identity.contents import data_content
from pytensor_fuse._pytensor.graphs.inner_graphs import graphs_inside, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytensor.graph.basic import Constant
    from pytensor.graph.op import Op


def inner_constants(ops: Iterable[Op]) -> Iterator[Constant[Any]]:
    """Yield the constants in the inner graphs of ops, and in those of the ops there.

    Constants in graphs of scalars are omitted, since they are immutable.
    """
    for graph in graphs_inside(ops):
        yield from parts_of(graph).constants


class Contents:
    """A snapshot of the data of constants.

    Parameters
    ----------
    constants
        The constants.
    """

    def __init__(self, constants: Iterable[Constant[Any]]) -> None:
        self._of_data = [(one.data, data_content(one.data)) for one in constants]

    def are_known(self) -> bool:
        """Whether a change of any data can be detected."""
        return all(content is not None for _, content in self._of_data)

    def told(self) -> list[tuple[bytes | None, Any]]:
        """Return the contents of the data, in the order of the constants, and their strides."""
        return [(content, getattr(data, "strides", None)) for data, content in self._of_data]

    def arrays(self) -> list[np.ndarray[Any, Any]]:
        """Return the arrays among the data."""
        return [data for data, _ in self._of_data if isinstance(data, np.ndarray)]

    def are_the_same(self) -> bool:
        """Whether the data are unchanged, as far as that can be detected."""
        return all(data_content(data) == content for data, content in self._of_data)
