"""Checked builder for third-party rules, which reports invalid arguments at once.

This package's own rules are tested, and use the builder without checks.
"""

from __future__ import annotations

from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING

from pytensor_fuse._native.lowering.others.requirements import (
    near,
    require_dtype,
    require_element,
    require_failure,
    require_index,
    require_innermost,
    require_literal,
    require_value,
)
from pytensor_fuse._native.lowering.values import OwningBuilder
from pytensor_fuse._native.program.external.routines import ROUTINES
from pytensor_fuse._native.program.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytensor_fuse._native.lowering.types import Context, Loop
    from pytensor_fuse._native.program.model import BufferId, BufferKind, Operand, Statement


def checking(context: Context) -> Context:
    """Return a context that continues the same program with checks of all arguments."""
    assert isinstance(context.builder, OwningBuilder)
    other = copy(context)
    other.builder = CheckingBuilder(context.builder)
    return other


class CheckingBuilder(OwningBuilder):
    """A builder that checks its arguments.

    Parameters
    ----------
    builder
        The builder of the program to continue; both share all state.
    """

    def __init__(self, builder: OwningBuilder) -> None:
        self.__dict__ = builder.__dict__

    def constant(self, dtype: str, number: bool | int | float) -> int:
        require_dtype(dtype)
        return super().constant(dtype, require_literal(dtype, number))

    def number(self, value: int) -> bool | int | float | None:
        require_value(self, value, "the argument of builder.number")
        return super().number(value)

    def dtype(self, value: int) -> str:
        require_value(self, value, "the argument of builder.dtype")
        return super().dtype(value)

    def op(self, name: str, *args: int) -> int:
        operation = OPERATIONS.get(name)
        if operation is None:
            raise ValueError(f"there is no operation {name!r}{near(name, OPERATIONS)}")
        if name == "cast":
            raise ValueError("builder.cast(value, dtype) writes casts")
        if len(args) != operation.arity:
            raise TypeError(f"{name} has {len(args)} arguments, and takes {operation.arity}")
        for arg in args:
            require_value(self, arg, f"an argument of {name}")
        dtypes = [self._dtypes[arg] for arg in args]
        same = dtypes[name == "select" :]
        if any(one != same[0] or one not in operation.takes for one in same) or (
            name == "select" and dtypes[0] != "bool"
        ):
            first = "a condition of bool, and two of " if name == "select" else ""
            raise TypeError(
                f"{name} of {', '.join(dtypes)}: it takes {first}one dtype of "
                f"{', '.join(operation.takes)}; builder.cast(value, dtype) converts"
            )
        return super().op(name, *args)

    def cast(self, value: int, dtype: str) -> int:
        require_value(self, value, "the operand of a cast")
        require_dtype(dtype)
        return super().cast(value, dtype)

    def buffer(
        self,
        kind: BufferKind,
        position: int,
        dtype: str,
        lengths: Sequence[int],
        *,
        is_once: bool = True,
    ) -> BufferId:
        require_dtype(dtype)
        for length in lengths:
            require_value(self, length, "a length")
        return super().buffer(kind, position, dtype, lengths, is_once=is_once)

    def load(self, buffer: BufferId, index: Sequence[int], *, is_guarded: bool = False) -> int:
        require_index(self, index, len(self.program.buffers[buffer].lengths))
        return super().load(buffer, index, is_guarded=is_guarded)

    def store(
        self,
        buffer: BufferId,
        index: Sequence[int],
        value: int,
        combiner: str = "",
        *,
        is_guarded: bool = False,
    ) -> None:
        about = self.program.buffers[buffer]
        require_index(self, index, len(about.lengths))
        require_element(self, value, about.dtype)
        super().store(buffer, index, value, combiner, is_guarded=is_guarded)

    def call(self, name: str, sizes: Sequence[int], operands: Sequence[Operand | BufferId]) -> int:
        routine = ROUTINES.get(name)
        if routine is None:
            raise ValueError(f"there is no routine {name!r}{near(name, ROUTINES)}")
        for what, given, taken in (
            ("sizes", sizes, routine.sizes),
            ("operands", operands, routine.operands),
        ):
            if len(given) != len(taken):
                raise TypeError(f"{name} has {len(given)} {what}, and takes {len(taken)}")
        for size in sizes:
            require_element(self, size, "i64", f"a size of {name}")
        return super().call(name, sizes, operands)

    @contextmanager
    def loop(self, extent: int) -> Iterator[Loop]:
        require_value(self, extent, "a length")
        with super().loop(extent) as loop:
            yield loop

    def reduce(self, loop: Loop, combiner: str, initial: int, term: int) -> int:
        require_innermost(self, loop, "builder.reduce")
        require_value(self, initial, "the initial value of a reduction")
        require_element(self, term, self._dtypes[initial], "a term of a reduction")
        return super().reduce(loop, combiner, initial, term)

    def carry(self, loop: Loop, inner: int, initial: int, following: int) -> int:
        require_innermost(self, loop, "builder.carry")
        require_value(self, inner, "a carried value")
        for one in (initial, following):
            require_element(self, one, self._dtypes[inner], "a carried value")
        return super().carry(loop, inner, initial, following)

    def branch(
        self,
        condition: int,
        then: list[Statement],
        otherwise: list[Statement],
        choices: Sequence[tuple[int, int]],
    ) -> list[int]:
        require_element(self, condition, "bool", "a condition")
        for one, other in choices:
            require_value(self, one, "a choice")
            require_element(self, other, self._dtypes[one], "a choice")
        return super().branch(condition, then, otherwise, choices)

    def check(
        self, condition: int, exception: type[BaseException], message: str, *details: int
    ) -> None:
        require_element(self, condition, "bool", "a condition")
        for one in details:
            require_element(self, one, "i64", "a detail of a message")
        require_failure(exception, message, len(details))
        super().check(condition, exception, message, *details)
