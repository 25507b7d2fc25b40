"""Vectors of a loop's values: each lane holds the value of one iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.emission.operations import splat
from pytensor_fuse._native.emission.types import REGISTER, vector

if TYPE_CHECKING:
    from pytensor_fuse._native.emission.accesses import Movement
    from pytensor_fuse._native.emission.functions import FunctionEmitter
    from pytensor_fuse._native.program.model import Value


def multiples(step: int, lanes: int) -> str:
    """Return the elements of a vector with each lane's distance from the first, wrapped to i64."""
    half = 1 << 63
    wrapped = [(step * lane + half) % (2 * half) - half for lane in range(lanes)]
    return ", ".join([f"i64 {number}" for number in wrapped])


class Lanes:
    """The values of one loop as vectors.

    Parameters
    ----------
    function
        The function around the loop.
    movement
        The changes of the loop's values between iterations.
    count
        The number of lanes of a vector.

    Attributes
    ----------
    count
        The number of lanes of a vector.
    mask
        The operand of the mask of active lanes; empty if all lanes are active.
    before
        Lines to be written before the loop.
    """

    def __init__(self, function: FunctionEmitter, movement: Movement, count: int) -> None:
        self._f = function
        self._w = function.w
        self._movement = movement
        self.count = count
        self.mask = ""
        self.before: list[str] = []
        self._vectors: dict[Value, str] = {}
        self._invariant: dict[Value, str] = {}

    def begin(self) -> None:
        """Begin a new vector: forget all values except loop-invariant ones."""
        self._vectors.clear()
        self.mask = ""

    def define(self, value: Value, operand: str) -> None:
        """Set the operand of a value's vector."""
        self._vectors[value] = operand

    def spread(self, dtype: str, operand: str, lines: list[str]) -> str:
        """Return a vector with one value in all lanes; append its instructions to lines."""
        lanes, w = self.count, self._w
        kind, element = vector(REGISTER[dtype], lanes), REGISTER[dtype]
        first, out = w.name(), w.name()
        lines.append(f"  {first} = insertelement {kind} poison, {element} {operand}, i64 0")
        picks = f"<{lanes} x i32> zeroinitializer"
        lines.append(f"  {out} = shufflevector {kind} {first}, {kind} poison, {picks}")
        return out

    def vector(self, value: Value) -> str:
        """Return the operand of a value's vector."""
        found = self._vectors.get(value) or self._invariant.get(value)
        if found is not None:
            return found
        f, lanes, steps = self._f, self.count, self._movement.steps
        dtype = f.program.dtypes[value]
        number = f.program.constants.get(value)
        if number is not None:
            found = self._invariant[value] = splat(dtype, number, lanes)
        elif value not in steps:
            found = self._invariant[value] = self.spread(dtype, f.operands[value], self.before)
        else:
            found = self.spread(dtype, f.operands[value], self._w.lines)
            step = steps[value]
            if step:
                numbers = multiples(step, lanes)
                found = self._w.let(f"add <{lanes} x i64> {found}, <{numbers}>")
            self._vectors[value] = found
        return found

    def mask_or_all(self) -> str:
        """Return the operand of the mask, or of a mask with all lanes active."""
        return self.mask or splat("bool", True, self.count)
