"""Traversal of statements: their uses, definitions and buffer accesses, with nested statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.program.model import (
    Allocate,
    Call,
    Check,
    Draw,
    For,
    If,
    Load,
    Op,
    Store,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytensor_fuse._native.program.model import BufferId, Statement, Value


def statements_in(block: Sequence[Statement]) -> Iterator[Statement]:
    """Yield all statements of a block in pre-order: each before its nested statements."""
    for statement in block:
        yield statement
        if isinstance(statement, For):
            yield from statements_in(statement.body)
        elif isinstance(statement, If):
            yield from statements_in(statement.then)
            yield from statements_in(statement.otherwise)


def with_blocks(
    statement: For | If, becomes: Callable[[Sequence[Statement]], list[Statement]]
) -> For | If:
    """Return a loop or a branch with each block replaced by the result of a function."""
    if isinstance(statement, If):
        then, otherwise = becomes(statement.then), becomes(statement.otherwise)
        return If(statement.condition, then, otherwise, statement.choices)
    body = becomes(statement.body)
    return For(
        statement.index,
        statement.extent,
        body,
        statement.reductions,
        statement.carries,
        statement.until,
    )


def used_by(statement: Statement) -> tuple[Value, ...]:
    """Return the values that a statement itself uses, its nested blocks left out."""
    if isinstance(statement, Op | Draw):
        return statement.args
    if isinstance(statement, Load):
        return statement.index
    if isinstance(statement, Store):
        return (*statement.index, statement.value)
    if isinstance(statement, For):
        used = [statement.extent]
        for reduction in statement.reductions:
            used += [reduction.initial, reduction.term]
        for carry in statement.carries:
            used += [carry.initial, carry.following]
        used += [] if statement.until is None else [statement.until]
        return tuple(used)
    if isinstance(statement, If):
        used = [statement.condition]
        for choice in statement.choices:
            used += [choice.then, choice.otherwise]
        return tuple(used)
    if isinstance(statement, Check):
        return (statement.condition, *statement.details)
    if isinstance(statement, Call):
        used = list(statement.sizes)
        for operand in statement.operands:
            used += operand.prefix
        return tuple(used)
    assert isinstance(statement, Allocate)
    return ()


def defined_by(statement: Statement) -> list[Value]:
    """Return the values that a statement defines for the statements after it."""
    if isinstance(statement, Op | Load | Draw):
        return [statement.out]
    if isinstance(statement, For):
        reduced = [reduction.out for reduction in statement.reductions]
        return [*reduced, *[carry.out for carry in statement.carries]]
    if isinstance(statement, If):
        return [choice.out for choice in statement.choices]
    if isinstance(statement, Call) and statement.out is not None:
        return [statement.out]
    return []


def accessed_by(statement: Statement) -> Iterator[BufferId]:
    """Yield the buffers that a statement or a nested one reads or writes."""
    for inner in statements_in([statement]):
        if isinstance(inner, Load | Store):
            yield inner.buffer
        elif isinstance(inner, Call):
            for operand in inner.operands:
                yield operand.buffer
        elif isinstance(inner, Draw):
            yield inner.generator
