"""Rare lanes, computed by a function that is never inlined.

Either a scalar function is called for each rare lane, or a vector function recomputes all lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from pytensor_fuse._native.mathematics.text import Body, Value, suffix, type_name


def with_rare_lanes(
    symbol: str,
    usual: Value,
    result: Value,
    arguments: tuple[Value, ...],
    scalar: Callable[..., Value],
) -> Value:
    """Return the result in usual lanes, and that of a scalar algorithm in the others.

    If all lanes are usual, no function is called.
    """
    body = result.body
    _define(body, symbol, 1, len(arguments), scalar)
    if body.lanes == 1:
        return _branch(usual, result, symbol, [("f64", a.name) for a in arguments])
    name = f"{symbol}.v{body.lanes}"
    body.helpers[name] = _lane_function(symbol, body.lanes, len(arguments))
    given = [("i1", usual.name), *(("f64", a.name) for a in (result, *arguments))]
    return _branch(usual, result, name, given)


def with_general_form(
    name: str,
    usual: Value,
    result: Value,
    arguments: tuple[Value, ...],
    general: Callable[..., Value],
) -> Value:
    """Return the result if all lanes are usual, and otherwise the general form for all lanes."""
    body = result.body
    symbol = f"fuse.{name}.general.{suffix('f64', body.lanes)}"
    _define(body, symbol, body.lanes, len(arguments), general)
    return _branch(usual, result, symbol, [("f64", x.name) for x in arguments])


def _define(
    caller: Body, symbol: str, lanes: int, n_arguments: int, write: Callable[..., Value]
) -> None:
    """Add the function of an algorithm to the helpers of a body."""
    body = Body(lanes, caller.target)
    result = write(*[Value(body, f"%x{k}", "f64") for k in range(n_arguments)])
    one = body.type("f64")
    parameters = ", ".join(f"{one} %x{k}" for k in range(n_arguments))
    lines = [
        f"define internal {one} @{symbol}({parameters}) cold noinline nounwind {{",
        *body.lines,
        f"  ret {one} {result.name}",
        "}",
    ]
    caller.helpers.update(body.helpers)
    caller.helpers[symbol] = "\n".join(lines) + "\n"
    caller.declarations.update(body.declarations)


def _branch(usual: Value, result: Value, called: str, given: list[tuple[str, str]]) -> Value:
    """Return the result if all lanes are usual, and otherwise the result of a function call."""
    body = result.body
    test = usual.name
    if body.lanes > 1:
        bits, test = body.new_name(), body.new_name()
        body.lines += [
            f"  {bits} = bitcast {body.type('i1')} {usual.name} to i{body.lanes}",
            f"  {test} = icmp eq i{body.lanes} {bits}, -1",
        ]
    before, rare, after = (body.new_name()[1:] for _ in range(3))
    outcome, corrected = body.new_name(), body.new_name()
    double = body.type("f64")
    call = ", ".join(f"{body.type(kind)} {name}" for kind, name in given)
    body.lines += [
        f"  br label %{before}",
        f"{before}:",
        f"  br i1 {test}, label %{after}, label %{rare}",
        f"{rare}:",
        f"  {corrected} = call {double} @{called}({call})",
        f"  br label %{after}",
        f"{after}:",
        f"  {outcome} = phi {double} [{result.name}, %{before}], [{corrected}, %{rare}]",
    ]
    return Value(body, outcome, "f64")


def _lane_function(symbol: str, lanes: int, arguments: int) -> str:
    """Return the definition of a function that calls the slow one for each unusual lane."""
    double, mask = type_name("f64", lanes), type_name("i1", lanes)
    parameters = "".join(f", {double} %x{k}" for k in range(arguments))
    extracts = [f"  %e{k} = extractelement {double} %x{k}, i32 %lane" for k in range(arguments)]
    call = ", ".join(f"double %e{k}" for k in range(arguments))
    lines = [
        f"define internal {double} @{symbol}.v{lanes}({mask} %usual, {double} %result"
        f"{parameters}) cold noinline nounwind {{",
        "entry:",
        "  br label %head",
        "head:",
        "  %lane = phi i32 [0, %entry], [%next, %tail]",
        f"  %so_far = phi {double} [%result, %entry], [%updated, %tail]",
        f"  %is_usual = extractelement {mask} %usual, i32 %lane",
        "  br i1 %is_usual, label %tail, label %rare",
        "rare:",
        *extracts,
        f"  %value = call double @{symbol}({call})",
        f"  %inserted = insertelement {double} %so_far, double %value, i32 %lane",
        "  br label %tail",
        "tail:",
        f"  %updated = phi {double} [%so_far, %head], [%inserted, %rare]",
        "  %next = add i32 %lane, 1",
        f"  %more = icmp ult i32 %next, {lanes}",
        "  br i1 %more, label %head, label %done",
        "done:",
        f"  ret {double} %updated",
        "}",
    ]
    return "\n".join(lines) + "\n"
