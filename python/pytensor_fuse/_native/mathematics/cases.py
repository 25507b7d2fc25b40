"""Numbers that are computed in one of two ways.

Vectors compute both and select, so that no lane waits for a branch of another one. A single number
branches: its bits are the same, and the other way takes no time.
"""

from __future__ import annotations

from collections.abc import Callable

from pytensor_fuse._native.mathematics.text import FALSE, TRUE, Value, select


def choose(
    condition: Value,
    yes: Callable[[], tuple[Value, ...]],
    no: Callable[[], tuple[Value, ...]],
) -> tuple[Value, ...]:
    """Return what `yes` writes where the condition holds, and what `no` writes elsewhere."""
    body = condition.body
    if body.lanes > 1:
        pairs = zip(yes(), no(), strict=True)
        return tuple([select(condition, one, other) for one, other in pairs])
    labels = [body.new_name()[1:] for _ in range(5)]
    body.lines.append(f"  br i1 {condition.name}, label %{labels[0]}, label %{labels[2]}")
    sides: list[tuple[Value, ...]] = []
    for write, (begin, end) in ((yes, labels[:2]), (no, labels[2:4])):
        body.lines.append(f"{begin}:")
        sides.append(write())
        # Writing may have begun other blocks.
        body.lines += [f"  br label %{end}", f"{end}:", f"  br label %{labels[4]}"]
    body.lines.append(f"{labels[4]}:")
    found = []
    for one, other in zip(*sides, strict=True):
        ways = f"[{one.name}, %{labels[1]}], [{other.name}, %{labels[3]}]"
        found.append(body.append(one.kind, f"phi {body.type(one.kind)} {ways}"))
    return tuple(found)


def unless(
    condition: Value, numbers: tuple[float, ...], write: Callable[[], tuple[Value, ...]]
) -> tuple[Value, ...]:
    """Return what `write` writes, which is these numbers where the condition holds.

    Vectors have it written in any case. A single number takes no time for it if it need not.
    """
    body = condition.body
    if body.lanes > 1:
        return write()
    return choose(condition, lambda: tuple([body.constant(one) for one in numbers]), write)


def in_cases(condition: Value, write: Callable[[Value], tuple[Value, ...]]) -> tuple[Value, ...]:
    """Return what is written for a condition, of which a single number takes one way only.

    Vectors have it written once. For single numbers it is written for each outcome, and `select`
    takes one side.
    """
    body = condition.body
    if body.lanes > 1:
        return write(condition)
    return choose(
        condition,
        lambda: write(Value(body, TRUE, "i1")),
        lambda: write(Value(body, FALSE, "i1")),
    )
