"""The record of an accelerator: the switch, the status, the docs and the tests derive from it.

A record imports nothing from PyTensor: the facts are checked before the implementation is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.compat.checks import Fact


class Gain(NamedTuple):
    """The measured gain of an accelerator.

    Attributes
    ----------
    ratio
        How many times longer a compile takes without it, all others being on.
    graph
        The graph that was compiled, as the benchmarks call it.
    """

    ratio: float
    graph: str

    def __str__(self) -> str:
        return f"{self.ratio:.2f}x on {self.graph}"


class Accelerator(NamedTuple):
    """The description of an accelerator, without its implementation.

    Attributes
    ----------
    title
        A line for the status.
    replaces
        The functions and methods of PyTensor that it replaces.
    skips
        The work that it leaves out, in Markdown for the docs.
    ground
        The facts that must hold.
    since
        The release of PyTensor before which there is nothing to change.
    gain
        The largest figure of ``benchmarks/compiling/test_accelerators.py``: the time of a whole
        compile with all accelerators but this one, divided by that with all, interleaved, with the
        Python linker and without the cache, on PyTensor 3.3.8 and Python 3.13. None if no figure
        has stood out of the noise of the machine.
    """

    title: str
    replaces: str
    skips: str
    ground: tuple[Fact, ...]
    since: tuple[int, int] = (0, 0)
    gain: Gain | None = None
