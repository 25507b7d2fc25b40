"""Definitions of requested functions as LLVM text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from pytensor_fuse._native.mathematics.functions import FORMS, FUNCTIONS
from pytensor_fuse._native.mathematics.target import Target
from pytensor_fuse._native.mathematics.text import Body, Value, suffix, type_name

Request = tuple[str, str, int]

LANES = (1, 2, 4, 8, 16)
ELEMENTS = ("f64", "f32")
_ALL = {**FUNCTIONS, **FORMS}


def symbol(name: str, element: str, lanes: int) -> str:
    """Return the symbol of a function, such as `fuse.exp.v8f64`.

    Parameters
    ----------
    name
        The function, a key of `FUNCTIONS` or `FORMS`.
    element
        `f64` or `f32`.
    lanes
        The number of elements of a vector; 1 for a scalar.

    Returns
    -------
    str
        The name, without LLVM's `@`.
    """
    if name not in _ALL:
        raise ValueError(f"no function {name!r}: one of {', '.join(_ALL)}")
    if element not in ELEMENTS:
        raise ValueError(f"no element {element!r}: one of {', '.join(ELEMENTS)}")
    if lanes not in LANES:
        raise ValueError(f"no vectors of {lanes} lanes: one of {', '.join(map(str, LANES))}")
    return f"fuse.{name}.{suffix(element, lanes)}"


# The text that follows the parameters of a function.
_ATTRIBUTES = ") nounwind {"
_COPIED = ") alwaysinline nounwind {"


def _define(request: Request, target: Target) -> tuple[str, Body]:
    name, element, lanes = request
    function = _ALL[name]
    body = Body(lanes, target)
    given = [Value(body, f"%x{k}", element) for k in range(function.arguments)]
    one = type_name(element, lanes)
    parameters = ", ".join(f"{one} {value.name}" for value in given)
    if element == "f32":
        # A rounded result of double precision is the correctly rounded single in all but one of
        # millions of cases, and needs no second set of algorithms.
        given = [
            body.append("f64", f"fpext {one} {value.name} to {body.type('f64')}") for value in given
        ]
    found = function.write(*given)
    results = list(found) if isinstance(found, tuple) else [found]
    if element == "f32":
        results = [
            body.append("f32", f"fptrunc {body.type('f64')} {result.name} to {one}")
            for result in results
        ]
    kind, out = one, results[0].name
    if len(results) > 1:
        kind, out = f"{{{', '.join([one] * len(results))}}}", "poison"
        for place, result in enumerate(results):
            together = body.new_name()
            body.lines.append(
                f"  {together} = insertvalue {kind} {out}, {one} {result.name}, {place}"
            )
            out = together
    lines = [
        f"define internal {kind} @{symbol(*request)}({parameters}{_ATTRIBUTES}",
        *body.lines,
        f"  ret {kind} {out}",
        "}",
    ]
    return "\n".join(lines) + "\n", body


# In lines. A call costs a quarter of a short function's time, and spills of vectors around it; an
# inlined copy costs time in LLVM.
_LONGEST_COPIES = 200


def _is_copied(n_calls: int, n_lines: int) -> bool:
    """Whether a function that loops call is inlined into its callers."""
    return n_calls == 1 or n_calls * n_lines <= _LONGEST_COPIES


def definitions_and_declarations(
    requests: Iterable[Request],
    target: Target,
    *,
    inline: bool | None = None,
    in_loops: Collection[Request] = (),
) -> tuple[str, tuple[str, ...]]:
    """Return the definitions of functions, and the declarations that they need.

    Parameters
    ----------
    requests
        Name, element and lanes of each function, once per call; their order does not matter.
    target
        The processor.
    inline
        Whether the functions are inlined into their callers (`alwaysinline`); None to inline
        functions that loops call and that make the caller little longer.
    in_loops
        Requests of scalar functions by loops. Vectors are always in loops.

    Returns
    -------
    definitions : str
        The functions and their helpers, each once.
    declarations : tuple of str
        The declarations of intrinsics, one per line, sorted.
    """
    n_calls = Counter(requests)
    for request in n_calls:
        symbol(*request)
    positions = {name: position for position, name in enumerate(_ALL)}
    texts: list[str] = []
    helpers: dict[str, str] = {}
    declarations: set[str] = set()
    for name, element, lanes in sorted(
        n_calls, key=lambda one: (positions[one[0]], ELEMENTS.index(one[1]), one[2])
    ):
        request = (name, element, lanes)
        text, body = _define(request, target)
        is_copied = inline
        if is_copied is None:
            in_loop = lanes > 1 or request in in_loops
            is_copied = in_loop and _is_copied(n_calls[request], len(body.lines))
        texts.append(text.replace(_ATTRIBUTES, _COPIED) if is_copied else text)
        helpers.update(body.helpers)
        declarations.update(body.declarations)
    return "\n".join([*helpers.values(), *texts]), tuple(sorted(declarations))


def definitions(requests: Iterable[Request], target: Target, *, inline: bool | None = None) -> str:
    """Return the definitions of functions, preceded by the declarations that they need.

    See `definitions_and_declarations` for the parameters and the order.
    """
    text, declarations = definitions_and_declarations(requests, target, inline=inline)
    return "\n".join([*declarations, "", text])
