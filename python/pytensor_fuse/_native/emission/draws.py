"""Calls of NumPy's functions that draw random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.emission.types import REGISTER
from pytensor_fuse._native.program.external.draws import MEMORY_BYTES, SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.emission.writer import Writer
    from pytensor_fuse._native.program.external.draws import Distribution


def emit_draw(
    writer: Writer, distribution: Distribution, generator: str, args: Sequence[str]
) -> str:
    """Write a draw and return the operand of the random number.

    Parameters
    ----------
    writer
        The writer of the function.
    distribution
        The distribution.
    generator
        The operand of the generator's address, an integer.
    args
        The operands of the parameters.
    """
    if distribution.name == "standard_normal" and writer.in_loop:
        # A local import: most programs draw no normal numbers, which take tables.
        from pytensor_fuse._native.emission.ziggurat import ziggurat

        symbol = "draw.ziggurat"
        writer.define(symbol, lambda: ziggurat(symbol))
        writer.declare("declare double @exp(double)")
        writer.declare("declare double @log1p(double)")
        return writer.let(f"call double @{symbol}(i64 {generator})")
    symbol = f"draw.{distribution.name}"
    writer.define(symbol, lambda: _definition(writer, distribution, symbol))
    given = [f"i64 {generator}"]
    given += [
        f"{REGISTER[dtype]} {arg}" for dtype, arg in zip(distribution.takes, args, strict=True)
    ]
    return writer.let(f"call {REGISTER[distribution.gives]} @{symbol}({', '.join(given)})")


def _definition(writer: Writer, distribution: Distribution, symbol: str) -> str:
    """Return the definition of a function that supplies the further arguments of NumPy's."""
    function = f"{SYMBOLS}{distribution.function}"
    kind = REGISTER[distribution.gives]
    kinds = [REGISTER[dtype] for dtype in distribution.takes]
    more = {"memory": ["ptr"], "unmasked": ["i64", "i1 zeroext"], "": []}[distribution.more]
    writer.declare_external(
        function, f"declare {kind} @{function}({', '.join(['ptr', *kinds, *more])})"
    )
    params = ["i64 %generator", *[f"{one} %p{place}" for place, one in enumerate(kinds)]]
    given = ["ptr %at", *[f"{one} %p{place}" for place, one in enumerate(kinds)]]
    # Not inlined: stack memory that is allocated in a loop is freed only when the function returns.
    lines = [f"define internal {kind} @{symbol}({', '.join(params)}) noinline {{"]
    lines.append("  %at = inttoptr i64 %generator to ptr")
    if distribution.more == "memory":
        kept = f"[{MEMORY_BYTES} x i8]"
        lines.append(f"  %memory = alloca {kept}, align 16")
        lines.append(f"  store {kept} zeroinitializer, ptr %memory, align 16")
        given.append("ptr %memory")
    elif distribution.more == "unmasked":
        given += ["i64 0", "i1 zeroext false"]
    lines.append(f"  %drawn = call {kind} @{function}({', '.join(given)})")
    return "\n".join([*lines, f"  ret {kind} %drawn", "}"])
