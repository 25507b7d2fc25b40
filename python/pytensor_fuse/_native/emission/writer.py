"""Writer of LLVM text: lines, fresh names, declarations and definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.emission.types import REGISTER, vector

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.emission.calls import Calls


class Writer:
    """Writes the lines of one function.

    Attributes
    ----------
    lines
        The lines of the current part.
    label
        The LLVM block to which the next line belongs.
    in_loop
        Whether the current part is in a loop.
    """

    def __init__(self, calls: Calls) -> None:
        self.lines: list[str] = []
        self.label = "entry"
        self.in_loop = False
        self._calls = calls
        self._n_names = 0
        self._n_labels = 0
        # The last call of a function with two results, and its results.
        self._pair: tuple[object, tuple[str, str]] = (None, ("", ""))

    def let(self, text: str) -> str:
        """Write an instruction with a result, and return the result's name."""
        name = f"%v{self._n_names}"
        self._n_names += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def name(self) -> str:
        """Return a fresh name."""
        self._n_names += 1
        return f"%v{self._n_names - 1}"

    def do(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {text}")

    def fresh_label(self, hint: str) -> str:
        """Return the name of a new block."""
        self._n_labels += 1
        return f"{hint}{self._n_labels}"

    def begin(self, label: str) -> None:
        """Begin a new block."""
        self.lines.append(f"{label}:")
        self.label = label

    def intrinsic(self, name: str, kind: str, suffix: str, args: list[str]) -> str:
        """Call an intrinsic whose arguments and result have one type."""
        kinds = ", ".join([kind] * len(args))
        self._calls.declare(f"declare {kind} @{name}.{suffix}({kinds})")
        given = ", ".join([f"{kind} {arg}" for arg in args])
        return self.let(f"call {kind} @{name}.{suffix}({given})")

    def declare(self, text: str) -> None:
        """Declare a function that another module defines."""
        self._calls.declare(text)

    def declare_external(self, symbol: str, text: str) -> None:
        """Declare a function whose address the linker needs."""
        self._calls.declare_external(symbol, text)

    def define(self, symbol: str, text: Callable[[], str]) -> None:
        """Define a function of the module once."""
        self._calls.define(symbol, text)

    def call_of(self, name: str, dtype: str, args: list[str], lanes: int) -> str:
        """Call a mathematical function."""
        kind = vector(REGISTER[dtype], lanes)
        symbol = self._calls.symbol(name, dtype, lanes, len(args), in_loop=self.in_loop)
        given = ", ".join([f"{kind} {arg}" for arg in args])
        return self.let(f"call {kind} @{symbol}({given})")

    def pair_of(self, name: str, dtype: str, args: list[str], lanes: int) -> tuple[str, str]:
        """Call a mathematical function with two results, or reuse the last call if it is equal."""
        key = name, *args, lanes, self.label
        if self._pair[0] != key:
            kind = vector(REGISTER[dtype], lanes)
            symbol = self._calls.symbol(name, dtype, lanes, len(args), in_loop=self.in_loop)
            given = ", ".join([f"{kind} {arg}" for arg in args])
            both = self.let(f"call {{{kind}, {kind}}} @{symbol}({given})")
            found = [self.let(f"extractvalue {{{kind}, {kind}}} {both}, {k}") for k in range(2)]
            self._pair = key, (found[0], found[1])
        return self._pair[1]
