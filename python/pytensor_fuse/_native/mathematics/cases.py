"""Case distinctions between two ways of computing a number.

Vectors compute both ways and select. Scalars branch, which gives the same bits and saves the time
of the other way.
"""

from __future__ import annotations

from collections.abc import Callable

from pytensor_fuse._native.mathematics.text import FALSE, TRUE, Value, select


def choose(
    condition: Value, yes: Callable[[], tuple[Value, ...]], no: Callable[[], tuple[Value, ...]]
) -> tuple[Value, ...]:
    """Return the values of `yes` where the condition holds, and those of `no` elsewhere."""
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
        # The callback may have begun other blocks, so a known block ends the side.
        body.lines += [f"  br label %{end}", f"{end}:", f"  br label %{labels[4]}"]
    body.lines.append(f"{labels[4]}:")
    found = []
    for one, other in zip(*sides, strict=True):
        ways = f"[{one.name}, %{labels[1]}], [{other.name}, %{labels[3]}]"
        found.append(body.append(one.kind, f"phi {body.type(one.kind)} {ways}"))
    return tuple(found)


def in_cases(condition: Value, write: Callable[[Value], tuple[Value, ...]]) -> tuple[Value, ...]:
    """Return the values of `write`, specialized for each outcome of a condition in scalars.

    Vectors contain its instructions once. Scalars branch, and contain them once for each outcome,
    where each `select` on the condition reduces to one side.
    """
    body = condition.body
    if body.lanes > 1:
        return write(condition)
    return choose(
        condition, lambda: write(Value(body, TRUE, "i1")), lambda: write(Value(body, FALSE, "i1"))
    )
