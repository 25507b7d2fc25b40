"""Sign analysis: functions of nonnegative arguments take shorter forms.

A scale is an exponential, a count is a constant, and their sum is nonnegative: its ``gammaln``
needs no formula for negative numbers, whose code takes LLVM a fifth of its time in a model of
counts. Moreover, a comparison of an exponential with 0 becomes one of its argument.

A value is nonnegative if its sign bit is clear or it is NaN. That is weaker than a bound, and holds
in spite of rounding and overflow. Loads are known to be nonnegative only from constant buffers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.program.model import For, If, Load, Op, Program, Statement
from pytensor_fuse._native.program.operations import OF_POSITIVE, POSITIVE
from pytensor_fuse._native.program.walking import with_blocks

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pytensor_fuse._native.program.model import BufferId, Value

_ALWAYS: Final = ("exp", "exp2", "sigmoid", "softplus", "abs", "cosh", "erfc", "erfcx")
# Operations whose result is nonnegative if all arguments are. Differences are left out, and so are
# extrema, which may return either of two zeros of different signs.
_NAMES: Final = (
    "add mul div sqrt log1p expm1 tanh sinh arctan arcsinh erf floor ceil trunc rint pow hypot"
)
_KEEP: Final = frozenset(_NAMES.split())
_UNSIGNED: Final = ("u64", "u32", "u16", "u8", "bool")
# The least number whose exponential does not round to 0: just above the logarithm of 2**-1075.
_LEAST_EXPONENT: Final = float.fromhex("-0x1.74910d52d3051p+9")


def by_signs(program: Program, constants: Collection[BufferId]) -> Program:
    """Return a program in which functions take the shorter forms that their arguments allow.

    Parameters
    ----------
    program
        The program, which is not changed.
    constants
        The constant buffers without a negative element, and without -0.0.

    Returns
    -------
    Program
        The new program; the same program if it calls the functions that Numba's back end calls.
    """
    if program.calls_libm:
        return program
    pass_ = _Signs(program, constants)
    body = pass_.block(program.body)
    return pass_.program.with_body(body)


class _Signs:
    """The state of the pass over one program."""

    def __init__(self, program: Program, constants: Collection[BufferId]) -> None:
        self.program = program.extended()
        self._constants = constants
        self._exponents: dict[Value, Value] = {}
        self._least: Value | None = None
        # Values that are known to be nonnegative.
        self._positive: set[Value] = {
            value for value, number in program.constants.items() if math.copysign(1.0, number) > 0
        }

    def block(self, statements: Sequence[Statement]) -> list[Statement]:
        """Return the transformed statements of a block."""
        after: list[Statement] = []
        for statement in statements:
            if isinstance(statement, Op):
                after.append(self._op(statement))
                continue
            if isinstance(statement, Load) and statement.buffer in self._constants:
                self._positive.add(statement.out)
            elif isinstance(statement, For | If):
                statement = with_blocks(statement, self.block)
                if isinstance(statement, For):
                    self._sums(statement)
                else:
                    self._choices(statement)
            after.append(statement)
        return after

    def _choices(self, branch: If) -> None:
        for choice in branch.choices:
            if {choice.then, choice.otherwise} <= self._positive:
                self._positive.add(choice.out)

    def _sums(self, loop: For) -> None:
        for one in loop.reductions:
            # Integers wrap, so their sums may be negative.
            if self.program.dtypes[one.out][0] != "f" or one.combiner not in ("add", "mul"):
                continue
            if {one.initial, one.term} <= self._positive:
                self._positive.add(one.out)

    def _op(self, op: Op) -> Op:
        if self.program.dtypes[op.out][0] != "f":
            return self._comparison(op)
        args = op.args
        is_positive = all(arg in self._positive for arg in args)
        if (
            op.name in _ALWAYS
            or (op.name == "mul" and args[0] == args[1])
            or (op.name in _KEEP and is_positive)
            or (op.name == "select" and {*args[1:]} <= self._positive)
            or (op.name == "cast" and (is_positive or self._is_unsigned(args[0])))
        ):
            self._positive.add(op.out)
        if op.name == "exp" and self.program.dtypes[op.out] == "f64":
            self._exponents[op.out] = args[0]
        if op.name in OF_POSITIVE and is_positive:
            return Op(op.out, op.name + POSITIVE, args)
        return op

    def _is_unsigned(self, value: Value) -> bool:
        return self.program.dtypes[value] in _UNSIGNED

    def _comparison(self, op: Op) -> Op:
        """Replace the comparison of an exponential with 0 by one of its argument."""
        if op.name not in ("gt", "lt"):
            return op
        value, zero = op.args if op.name == "gt" else reversed(op.args)
        exponent = self._exponents.get(value)
        if exponent is None or self.program.constants.get(zero) != 0.0:
            return op
        return Op(op.out, "ge", (exponent, self._least_exponent()))

    def _least_exponent(self) -> Value:
        if self._least is None:
            self._least = len(self.program.dtypes)
            self.program.dtypes.append("f64")
            self.program.constants[self._least] = _LEAST_EXPONENT
        return self._least
