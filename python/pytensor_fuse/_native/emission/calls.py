"""Mathematical functions that a module calls, and their sources.

Functions of the vector library are defined in the module. Any other function is called lane by lane
from a wrapper in the module, and comes from the C library or SciPy: it is the one that Numba's back
end calls for the dtype, so its results have the bits of PyTensor's Numba mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor_fuse._native import mathematics
from pytensor_fuse._native.emission.types import REGISTER, suffix, vector
from pytensor_fuse._native.program.operations import POSITIVE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.mathematics import Target

# The C library's name of each operation in double precision; single precision appends an f.
C_NAMES: Final = {
    **{
        name: name
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "sinh", "cosh"),
            *("sin", "cos", "tan", "erf", "erfc", "pow", "hypot"),
        )
    },
    **{f"arc{name}": f"a{name}" for name in ("tan", "sin", "cos", "tanh", "sinh", "cosh", "tan2")},
    "gammaln": "lgamma",
}
# Functions that SciPy also has in single precision, which PyTensor then calls.
SCIPY_SINGLE: Final = ("erfinv", "betainc", "betaincinv")
# Functions in neither the C library nor SciPy's Cython interface.
_NOWHERE_ELSE: Final = ("trigamma",)
# The prefix of the symbols of SciPy's functions, which precedes the name of the operation, and the
# suffix in single precision.
SCIPY: Final = "scipy."
OF_FLOATS: Final = ".float"
# Operations that the module composes of others, as LLVM text with {t} for the type and {s} for its
# suffix. Each rounds as NumPy does, which computes in the dtype itself.
_DIVISIONS: Final = {
    "floordiv": """\
define internal {t} @{symbol}({t} %a, {t} %b) noinline {{
  %r = frem {t} %a, %b
  %d0 = fsub {t} %a, %r
  %d1 = fdiv {t} %d0, %b
  %there = fcmp une {t} %r, 0x0000000000000000
  %bneg = fcmp olt {t} %b, 0x0000000000000000
  %rneg = fcmp olt {t} %r, 0x0000000000000000
  %differ = xor i1 %bneg, %rneg
  %adjust = and i1 %there, %differ
  %d2 = fsub {t} %d1, 0x3FF0000000000000
  %d3 = select i1 %adjust, {t} %d2, {t} %d1
  %fl = call {t} @llvm.floor.{s}({t} %d3)
  %gap = fsub {t} %d3, %fl
  %far = fcmp ogt {t} %gap, 0x3FE0000000000000
  %up = fadd {t} %fl, 0x3FF0000000000000
  %fl2 = select i1 %far, {t} %up, {t} %fl
  %q = fdiv {t} %a, %b
  %zero = call {t} @llvm.copysign.{s}({t} 0x0000000000000000, {t} %q)
  %isz = fcmp oeq {t} %d3, 0x0000000000000000
  %res = select i1 %isz, {t} %zero, {t} %fl2
  %bz = fcmp oeq {t} %b, 0x0000000000000000
  %out = select i1 %bz, {t} %q, {t} %res
  ret {t} %out
}}""",
    "mod": """\
define internal {t} @{symbol}({t} %a, {t} %b) noinline {{
  %r = frem {t} %a, %b
  %there = fcmp une {t} %r, 0x0000000000000000
  %bneg = fcmp olt {t} %b, 0x0000000000000000
  %rneg = fcmp olt {t} %r, 0x0000000000000000
  %differ = xor i1 %bneg, %rneg
  %adjust = and i1 %there, %differ
  %r2 = fadd {t} %r, %b
  %r3 = select i1 %adjust, {t} %r2, {t} %r
  %zero = call {t} @llvm.copysign.{s}({t} 0x0000000000000000, {t} %b)
  %res = select i1 %there, {t} %r3, {t} %zero
  %bz = fcmp oeq {t} %b, 0x0000000000000000
  %nan = fcmp uno {t} %r, %r
  %keep = or i1 %bz, %nan
  %out = select i1 %keep, {t} %r, {t} %res
  ret {t} %out
}}""",
}


class Calls:
    """The declarations and definitions of a module besides its main function.

    Parameters
    ----------
    target
        The target of vector functions.
    uses_library
        Whether functions come from the vector library where it has them; otherwise they come from
        the C library, as Numba's do.

    Attributes
    ----------
    externals
        The symbols of called functions of SciPy, BLAS and LAPACK, whose addresses the linker needs.
    """

    def __init__(self, target: Target, *, uses_library: bool) -> None:
        self._target = target
        self._uses_library = uses_library
        self._declared: dict[str, None] = {}
        self._defined: dict[str, str] = {}
        self._requests: list[tuple[str, str, int]] = []
        self._in_loops: set[tuple[str, str, int]] = set()
        self.externals: dict[str, None] = {}

    def declare(self, text: str) -> None:
        """Declare a function once."""
        self._declared[text] = None

    def declare_external(self, symbol: str, text: str) -> None:
        """Declare a function whose address the linker needs."""
        self.externals[symbol] = None
        self.declare(text)

    def define(self, symbol: str, text: Callable[[], str]) -> None:
        """Define a function once."""
        if symbol not in self._defined:
            self._defined[symbol] = ""
            self._defined[symbol] = text()

    def symbol(self, name: str, dtype: str, lanes: int, arity: int, *, in_loop: bool) -> str:
        """Return the symbol of the function for an operation on vectors of a number of lanes.

        Each call site requests it, and says whether it is in a loop.
        """
        if not self._uses_library:
            name = name.removesuffix(POSITIVE)
        is_ours = name in mathematics.FUNCTIONS and (self._uses_library or name in _NOWHERE_ELSE)
        if is_ours or name in mathematics.FORMS:
            self._requests.append((name, dtype, lanes))
            if in_loop:
                self._in_loops.add((name, dtype, lanes))
            return mathematics.symbol(name, dtype, lanes)
        symbol = f"each.{name}.{suffix(REGISTER[dtype], lanes)}"
        self.define(symbol, lambda: self._each(name, symbol, dtype, lanes, arity))
        return symbol

    def _each(self, name: str, symbol: str, dtype: str, lanes: int, arity: int) -> str:
        """Return the definition of a function that calls a scalar function for each lane."""
        scalar, called = self._scalar(name, dtype, arity)
        kind, element = vector(REGISTER[dtype], lanes), REGISTER[dtype]
        params = ", ".join([f"{kind} %x{k}" for k in range(arity)])
        lines = [f"define internal {kind} @{symbol}({params}) noinline {{"]
        result = "poison"
        for lane in range(lanes):
            args = []
            for k in range(arity):
                one = f"%x{k}"
                if lanes > 1:
                    one = f"%e{k}.{lane}"
                    lines.append(f"  {one} = extractelement {kind} %x{k}, i32 {lane}")
                if called != element:
                    lines.append(f"  %d{k}.{lane} = fpext float {one} to double")
                    one = f"%d{k}.{lane}"
                args.append(f"{called} {one}")
            got = f"%r{lane}"
            if scalar.startswith(SCIPY):
                args.append("i32 1")
            lines.append(f"  {got} = call {called} @{scalar}({', '.join(args)})")
            if called != element:
                lines.append(f"  %f{lane} = fptrunc double {got} to float")
                got = f"%f{lane}"
            if lanes > 1:
                lines.append(
                    f"  %w{lane} = insertelement {kind} {result}, {element} {got}, i32 {lane}"
                )
                got = f"%w{lane}"
            result = got
        return "\n".join([*lines, f"  ret {kind} {result}", "}"])

    def _scalar(self, name: str, dtype: str, arity: int) -> tuple[str, str]:
        """Return the symbol of a scalar function, and the type of its arguments and result."""
        if name in _COMPOSED:
            return self._written_out(name, dtype), REGISTER[dtype]
        # The vector library's functions of singles are those of doubles, rounded; with it, all
        # other functions are, too.
        is_single = dtype == "f32" and not self._uses_library
        is_single = is_single and (name in C_NAMES or name in SCIPY_SINGLE)
        kind = "float" if is_single else "double"
        kinds = [kind] * arity
        if name in C_NAMES:
            symbol = _c_name(C_NAMES[name], kind)
        else:
            symbol = SCIPY + name + (OF_FLOATS if is_single else "")
            # Cython adds an argument to some of these functions; the others ignore it.
            kinds.append("i32")
            self.externals[symbol] = None
        self.declare(f"declare {kind} @{symbol}({', '.join(kinds)})")
        return symbol, kind

    def _written_out(self, name: str, dtype: str) -> str:
        """Define a function that is composed of others; return its symbol."""
        kind, of = REGISTER[dtype], suffix(REGISTER[dtype], 1)
        symbol = f"composed.{name}.{of}"
        if symbol not in self._defined:
            is_single = kind == "float"
            called = {one: _c_name(one, kind) for one in ("exp", "log", "log1p", "expm1")}
            declared = [f"{one}({kind})" for one in called.values()]
            if name in _DIVISIONS:
                declared = [f"llvm.floor.{of}({kind})", f"llvm.copysign.{of}({kind}, {kind})"]
            for one in declared:
                self.declare(f"declare {kind} @{one}")
            self._defined[symbol] = _COMPOSED[name].format(
                symbol=symbol,
                t=kind,
                s=of,
                widen="fpext float" if is_single else "fadd double -0.0,",
                to=" to double" if is_single else "",
                narrow=_NARROW if is_single else "ret double %r",
                **called,
            )
        return symbol

    def texts(self) -> list[str]:
        """Return the parts of the module: declarations, then definitions."""
        declared = dict(self._declared)
        library = ""
        if self._requests:
            library, lines = mathematics.definitions_and_declarations(
                self._requests, self._target, in_loops=self._in_loops
            )
            declared.update(dict.fromkeys(lines))
        return [*declared, library, *self._defined.values()]


def _c_name(name: str, kind: str) -> str:
    return f"{name}f" if kind == "float" else name


_NARROW: Final = "%f = fptrunc double %r to float\n  ret float %f"
# Functions that PyTensor implements in Python for Numba. Literals there are doubles, so singles
# that are combined with one are widened; for doubles, adding -0.0 takes the place of that.
_COMPOSED: Final = {
    **_DIVISIONS,
    "sigmoid": """\
define internal {t} @{symbol}({t} %x) noinline {{
  %m = fneg {t} %x
  %e = call {t} @{exp}({t} %m)
  %w = {widen} %e{to}
  %d = fadd double %w, 1.0
  %r = fdiv double 1.0, %d
  {narrow}
}}""",
    "softplus": """\
define internal {t} @{symbol}({t} %x) noinline {{
  %w = {widen} %x{to}
  %low = fcmp olt double %w, -37.0
  %e = call {t} @{exp}({t} %x)
  br i1 %low, label %is_low, label %other
is_low:
  ret {t} %e
other:
  %mid = fcmp olt double %w, 18.0
  br i1 %mid, label %is_mid, label %high
is_mid:
  %l = call {t} @{log1p}({t} %e)
  ret {t} %l
high:
  %near = fcmp olt double %w, 0x4040A66666666666
  %m = fneg {t} %x
  %f = call {t} @{exp}({t} %m)
  %s = fadd {t} %x, %f
  %r = select i1 %near, {t} %s, {t} %x
  ret {t} %r
}}""",
    "log1mexp": """\
define internal {t} @{symbol}({t} %x) noinline {{
  %w = {widen} %x{to}
  %low = fcmp olt double %w, 0xBFE62E42FEFA39EF
  br i1 %low, label %is_low, label %other
is_low:
  %e = call {t} @{exp}({t} %x)
  %n = fneg {t} %e
  %l = call {t} @{log1p}({t} %n)
  ret {t} %l
other:
  %m = call {t} @{expm1}({t} %x)
  %k = fneg {t} %m
  %g = call {t} @{log}({t} %k)
  ret {t} %g
}}""",
}
