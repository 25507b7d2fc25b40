"""Interpreter that places temporary buffers in one arena, at the offsets of a placement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pytensor_fuse._native.program.arithmetic import NUMPY_DTYPES
from pytensor_fuse._native.program.interpret import _Memory, _Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.passes.placement import Amount, Placement
    from pytensor_fuse._native.program.model import BufferId, Program


class _RunInArena(_Run):
    def __init__(
        self,
        placement: Placement,
        program: Program,
        inputs: Sequence[np.ndarray],
        constants: Sequence[np.ndarray],
    ) -> None:
        super().__init__(program, inputs, constants)
        self._placement = placement
        self._arena: np.ndarray | None = None

    def _amount(self, amount: Amount) -> int:
        return amount if isinstance(amount, int) else self._integer(amount[1])

    def _is_placed(self, buffer: BufferId) -> bool:
        return (
            self._program.buffers[buffer].kind == "temporary" and buffer in self._placement.offsets
        )

    def _new_memory(self, buffer: BufferId) -> _Memory:
        memory = super()._new_memory(buffer)
        if self._is_placed(buffer):
            # The offset is known when the buffer is used.
            self._memory[buffer] = None
        return memory

    def _of(self, buffer: BufferId) -> _Memory:
        if self._memory[buffer] is None and self._is_placed(buffer):
            return self._in_arena(buffer)
        return super()._of(buffer)

    def _in_arena(self, buffer: BufferId) -> _Memory:
        about, offset = self._program.buffers[buffer], self._placement.offsets[buffer]
        start, total = self._amount(offset), self._placement.total
        assert start % 64 == 0
        if self._arena is None:
            self._arena = np.full(0 if total is None else self._amount(total), 0xFF, np.uint8)
            fits = self._placement.fits
            assert fits is None or self._integer(fits)
        lengths, dtype = self._lengths(about), np.dtype(NUMPY_DTYPES[about.dtype])
        size = int(np.prod(lengths, dtype=np.int64)) * dtype.itemsize
        part = self._arena[start : start + size]
        assert part.size == size, "the arena is too small"
        array = part.view(dtype).reshape(lengths)
        # Elements are unknown until written, although another buffer may have left values there.
        memory = self._memory[buffer] = _Memory(array, is_given=False)
        return memory


def in_arena(
    placement: Placement,
) -> Callable[[Program, Sequence[np.ndarray], Sequence[np.ndarray]], list[np.ndarray]]:
    """Return an interpreter for the program of a placement."""

    def by(
        program: Program, inputs: Sequence[np.ndarray], constants: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        return _RunInArena(placement, program, inputs, constants).outputs()

    return by
