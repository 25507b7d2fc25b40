"""Rare lanes, computed by a function that is never inlined.

Either a scalar function is called for each rare lane, or a vector function recomputes all lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytensor_fuse._native.mathematics.text import Body, Value, suffix, type_name


@dataclass(frozen=True)
class ScalarFunction:
    """A scalar function that computes rare elements.

    Attributes
    ----------
    name
        Its symbol.
    text
        Its definition.
    declarations
        Declarations that it needs, as lines of LLVM text.
    helpers
        The text of functions and tables that it uses, by symbol.
    """

    name: str
    text: str
    declarations: tuple[str, ...]
    helpers: tuple[tuple[str, str], ...] = ()


def define_scalar(
    name: str, body: Body, arguments: int, result: Value, helpers: tuple[tuple[str, str], ...] = ()
) -> ScalarFunction:
    """Make a scalar function of a body, its number of arguments and its result."""
    parameters = ", ".join(f"double %x{k}" for k in range(arguments))
    lines = [
        f"define internal double @{name}({parameters}) cold noinline nounwind {{",
        *body.lines,
        f"  ret double {result.name}",
        "}",
    ]
    return ScalarFunction(name, "\n".join(lines) + "\n", tuple(body.declarations), helpers)


def with_rare_lanes(
    usual: Value, result: Value, arguments: tuple[Value, ...], slow: ScalarFunction
) -> Value:
    """Return the result in usual lanes, and that of the slow function in the others.

    If all lanes are usual, no function is called.
    """
    body = result.body
    body.helpers.update(slow.helpers)
    body.helpers[slow.name] = slow.text
    body.declarations.update(dict.fromkeys(slow.declarations))
    if body.lanes == 1:
        return _branch(usual, result, slow.name, [("f64", a.name) for a in arguments])
    name = f"{slow.name}.v{body.lanes}"
    body.helpers[name] = _lane_function(slow, body.lanes, len(arguments))
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
    called = f"fuse.{name}.general.{suffix('f64', body.lanes)}"
    inner = Body(body.lanes, body.target)
    outcome = general(*[Value(inner, f"%x{k}", "f64") for k in range(len(arguments))])
    one = body.type("f64")
    parameters = ", ".join(f"{one} %x{k}" for k in range(len(arguments)))
    lines = [
        f"define internal {one} @{called}({parameters}) cold noinline nounwind {{",
        *inner.lines,
        f"  ret {one} {outcome.name}",
        "}",
    ]
    body.helpers.update(inner.helpers)
    body.helpers[called] = "\n".join(lines) + "\n"
    body.declarations.update(inner.declarations)
    return _branch(usual, result, called, [("f64", x.name) for x in arguments])


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


def _lane_function(slow: ScalarFunction, lanes: int, arguments: int) -> str:
    """Return the definition of a function that calls the slow one for each unusual lane."""
    double, mask = type_name("f64", lanes), type_name("i1", lanes)
    parameters = "".join(f", {double} %x{k}" for k in range(arguments))
    extracts = [f"  %e{k} = extractelement {double} %x{k}, i32 %lane" for k in range(arguments)]
    call = ", ".join(f"double %e{k}" for k in range(arguments))
    lines = [
        f"define internal {double} @{slow.name}.v{lanes}({mask} %usual, {double} %result"
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
        f"  %value = call double @{slow.name}({call})",
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
