"""Traversal of statements: their uses, definitions and buffer accesses, with nested statements."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from pytensor_fuse._native.program import model
from pytensor_fuse._native.program.model import Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytensor_fuse._native.program.model import BufferId, Value


def handlers(owner: object) -> dict[type, Callable[[Any], object]]:
    """Return an object's method for each kind of statement, named after it: `_load` for `Load`."""
    return {kind: getattr(owner, f"_{kind.__name__.lower()}") for kind in get_args(Statement)}


def statements_in(block: Sequence[Statement]) -> Iterator[Statement]:
    """Yield all statements of a block in pre-order: each before its nested statements."""
    for statement in block:
        yield statement
        if isinstance(statement, model.For):
            yield from statements_in(statement.body)
        elif isinstance(statement, model.If):
            yield from statements_in(statement.then)
            yield from statements_in(statement.otherwise)


def with_blocks(
    statement: model.For | model.If, becomes: Callable[[Sequence[Statement]], list[Statement]]
) -> model.For | model.If:
    """Return a loop or a branch with each block replaced by the result of a function."""
    if isinstance(statement, model.For):
        return replace(statement, body=becomes(statement.body))
    then, otherwise = becomes(statement.then), becomes(statement.otherwise)
    return replace(statement, then=then, otherwise=otherwise)


def used_by(statement: Statement) -> tuple[Value, ...]:
    """Return the values that a statement itself uses, its nested blocks left out."""
    if isinstance(statement, model.Op | model.Draw):
        return statement.args
    if isinstance(statement, model.Load):
        return statement.index
    if isinstance(statement, model.Store):
        return (*statement.index, statement.value)
    if isinstance(statement, model.For):
        used = [statement.extent]
        for reduction in statement.reductions:
            used += [reduction.initial, reduction.term]
        for carry in statement.carries:
            used += [carry.initial, carry.following]
        return tuple(used) if statement.until is None else (*used, statement.until)
    if isinstance(statement, model.If):
        chosen = [one for choice in statement.choices for one in (choice.then, choice.otherwise)]
        return (statement.condition, *chosen)
    if isinstance(statement, model.Check):
        return (statement.condition, *statement.details)
    if isinstance(statement, model.Call):
        return (*statement.sizes, *[at for one in statement.operands for at in one.prefix])
    return ()


def defined_by(statement: Statement) -> list[Value]:
    """Return the values that a statement defines for the statements after it."""
    if isinstance(statement, model.Op | model.Load | model.Draw):
        return [statement.out]
    if isinstance(statement, model.For):
        reduced = [one.out for one in statement.reductions]
        return [*reduced, *[one.out for one in statement.carries]]
    if isinstance(statement, model.If):
        return [choice.out for choice in statement.choices]
    if isinstance(statement, model.Call) and statement.out is not None:
        return [statement.out]
    return []


def accessed_by(statement: Statement) -> Iterator[BufferId]:
    """Yield the buffers that a statement or a nested one reads or writes."""
    for inner in statements_in([statement]):
        if isinstance(inner, model.Load | model.Store):
            yield inner.buffer
        elif isinstance(inner, model.Call):
            yield from [operand.buffer for operand in inner.operands]
        elif isinstance(inner, model.Draw):
            yield inner.generator
