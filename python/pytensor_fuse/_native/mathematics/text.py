"""Function bodies as LLVM text, built with Python's operators.

An algorithm is a Python function of `Value` objects. Each operator appends one instruction to the
body of its operands, which determines the number of lanes; so one algorithm yields the scalar form
and every vector form. Instructions carry no fast-math flags: the bits of an element depend neither
on the number of lanes nor on its position.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.mathematics.target import Target

SIGN = -(1 << 63)
TRUE, FALSE = "true", "false"
# The last bit of a double near 2**52 is worth 1; the factor 1.5 keeps the sum with a negative
# number in the same binade.
ROUNDER = 1.5 * 2.0**52


def hexadecimal(number: float) -> str:
    """Return the bits of a double as LLVM writes them."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def bits_of(number: float) -> int:
    """Return the bits of a double as a signed integer."""
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits


def scalar_type(kind: str) -> str:
    """Return LLVM's type of one element."""
    return {"f64": "double", "f32": "float"}.get(kind, kind)


def type_name(kind: str, lanes: int) -> str:
    """Return LLVM's type of a number of elements."""
    one = scalar_type(kind)
    return one if lanes == 1 else f"<{lanes} x {one}>"


def suffix(kind: str, lanes: int) -> str:
    """Return the suffix of a name for a type, as in `llvm.fma.v8f64`."""
    return kind if lanes == 1 else f"v{lanes}{kind}"


@dataclass
class Body:
    """The instructions of one function.

    Attributes
    ----------
    lanes
        The number of elements of a value.
    target
        The processor.
    lines
        The instructions so far.
    declarations
        The declarations of called intrinsics, as lines of LLVM text.
    helpers
        The text of the functions and tables in use, by symbol, in the order of first use.
    """

    lanes: int
    target: Target
    lines: list[str] = field(default_factory=list)
    declarations: dict[str, None] = field(default_factory=dict)
    helpers: dict[str, str] = field(default_factory=dict)
    _names: int = 0

    def new_name(self) -> str:
        """Return a fresh name for an instruction."""
        self._names += 1
        return f"%t{self._names}"

    def type(self, kind: str) -> str:
        """Return LLVM's type of values of a kind."""
        return type_name(kind, self.lanes)

    def append(self, kind: str, instruction: str) -> Value:
        """Append an instruction, and return its result."""
        name = self.new_name()
        self.lines.append(f"  {name} = {instruction}")
        return Value(self, name, kind)

    def constant(self, number: float | int, kind: str = "f64") -> Value:
        """Return a value with a number in all lanes."""
        text = hexadecimal(float(number)) if kind == "f64" else str(number)
        if self.lanes > 1:
            element = f"{scalar_type(kind)} {text}"
            text = "<" + ", ".join([element] * self.lanes) + ">"
        return Value(self, text, kind)

    def call(self, intrinsic: str, *arguments: Value) -> Value:
        """Call `llvm.<intrinsic>`, whose arguments and result have one type."""
        kind = arguments[0].kind
        name, one = f"@llvm.{intrinsic}.{suffix(kind, self.lanes)}", self.type(kind)
        types = ", ".join([one] * len(arguments))
        self.declarations[f"declare {one} {name}({types})"] = None
        given = ", ".join(f"{one} {argument.name}" for argument in arguments)
        return self.append(kind, f"call {one} {name}({given})")


def _alike(operand: Operand, value: Value) -> Value:
    """Return an operand as a value of the same kind as another."""
    return operand if isinstance(operand, Value) else value.body.constant(operand, value.kind)


def _operator(floating: str, integer: str) -> Callable[[Value, Operand], Value]:
    """Return a method that appends an instruction for floats or for integers."""

    def append(self: Value, other: Operand) -> Value:
        operation, kind = floating if self.kind[0] == "f" else integer, self.body.type(self.kind)
        names = f"{self.name}, {_alike(other, self).name}"
        return self.body.append(self.kind, f"{operation} {kind} {names}")

    return append


def _comparison(floating: str, integer: str) -> Callable[[Value, Operand], Value]:
    """Return a method that appends a comparison of floats or of integers."""

    def append(self: Value, other: Operand) -> Value:
        test = f"fcmp {floating}" if self.kind[0] == "f" else f"icmp {integer}"
        names = f"{self.name}, {_alike(other, self).name}"
        return self.body.append("i1", f"{test} {self.body.type(self.kind)} {names}")

    return append


_and = _operator("", "and")


@dataclass(frozen=True, eq=False)
class Value:
    """A vector or scalar of a body, or a constant.

    Attributes
    ----------
    body
        The function that computes it.
    name
        Its name or its digits.
    kind
        Its elements: `f64`, `f32`, `i64` or `i1`.
    """

    body: Body
    name: str
    kind: str

    __add__ = _operator("fadd", "add")
    __sub__ = _operator("fsub", "sub")
    __mul__ = _operator("fmul", "mul")
    __truediv__ = _operator("fdiv", "sdiv")
    __or__ = _operator("", "or")
    __xor__ = _operator("", "xor")
    __lshift__ = _operator("", "shl")
    # It fills with zeros: AVX2 has no `ashr` for 64 bits.
    __rshift__ = _operator("", "lshr")
    __lt__ = _comparison("olt", "slt")
    __gt__ = _comparison("ogt", "sgt")
    __le__ = _comparison("ole", "sle")
    __ge__ = _comparison("oge", "sge")
    # Negative integers are large if they are unsigned.
    unsigned_below = _comparison("", "ult")
    # `not_below` and `differs` are true for NaN, `equals` is false.
    not_below = _comparison("uge", "sge")
    equals = _comparison("oeq", "eq")
    differs = _comparison("une", "ne")

    def __radd__(self, other: float) -> Value:
        return _alike(other, self) + self

    def __rsub__(self, other: float | int) -> Value:
        return _alike(other, self) - self

    def __rmul__(self, other: float) -> Value:
        return _alike(other, self) * self

    def __rtruediv__(self, other: float) -> Value:
        return _alike(other, self) / self

    def __neg__(self) -> Value:
        return self.body.append(self.kind, f"fneg {self.body.type(self.kind)} {self.name}")

    def __abs__(self) -> Value:
        return self.body.call("fabs", self)

    def __and__(self, other: Operand) -> Value:
        if self.name in (TRUE, FALSE) and isinstance(other, Value):
            return other if self.name == TRUE else self
        return _and(self, other)

    def bits(self) -> Value:
        """Return the bits of a double as an integer."""
        body = self.body
        return body.append("i64", f"bitcast {body.type('f64')} {self.name} to {body.type('i64')}")

    def number(self) -> Value:
        """Return the double that has these bits."""
        body = self.body
        return body.append("f64", f"bitcast {body.type('i64')} {self.name} to {body.type('f64')}")


Operand = Value | float | int


def select(condition: Value, yes: Operand, no: Operand) -> Value:
    """Return `yes` where the condition holds, `no` elsewhere."""
    body = condition.body
    kind = yes.kind if isinstance(yes, Value) else no.kind if isinstance(no, Value) else "f64"
    first = yes if isinstance(yes, Value) else body.constant(yes, kind)
    second = no if isinstance(no, Value) else body.constant(no, kind)
    if condition.name in (TRUE, FALSE):
        return first if condition.name == TRUE else second
    test = f"{body.type('i1')} {condition.name}"
    one = body.type(kind)
    return body.append(kind, f"select {test}, {one} {first.name}, {one} {second.name}")


def fma(a: Value, b: Operand, c: Operand) -> Value:
    """Return `a * b + c`, rounded once if the processor has FMA, twice otherwise.

    Use it where either is accurate enough. See `two_product` for exact products.
    """
    body = a.body
    if body.target.fma:
        return body.call("fma", a, _alike(b, a), _alike(c, a))
    return a * b + c


def at_least(x: Value, bound: float) -> Value:
    """Return the larger of a value and a bound; NaN is kept."""
    return select(x < bound, bound, x)


def at_most(x: Value, bound: float) -> Value:
    """Return the smaller of a value and a bound; NaN is kept."""
    return select(x > bound, bound, x)


def copy_sign(x: Value, sign: Value) -> Value:
    """Return `x` with the sign of the other."""
    return x.body.call("copysign", x, sign)


def square_root(x: Value) -> Value:
    """Return the square root, correctly rounded."""
    return x.body.call("sqrt", x)


def round_to_integer(x: Value) -> tuple[Value, Value]:
    """Return the nearest integer as a double, and bits with that integer at their low end.

    It is exact for magnitudes below 2**51. The bits are the sum of the integer and a constant whose
    lowest 51 bits are zeros.
    """
    shifted = x + ROUNDER
    return shifted - ROUNDER, shifted.bits()


def look_up(index: Value, name: str, numbers: Sequence[float]) -> Value:
    """Return the entries of a table at given indices, which must be in bounds.

    Parameters
    ----------
    index
        The indices, as integers.
    name
        The table's name, unique to its numbers.
    numbers
        The table.
    """
    body = index.body
    symbol = f"fuse.table.{name}"
    listed = ", ".join([f"double {hexadecimal(number)}" for number in numbers])
    kind = f"[{len(numbers)} x double]"
    body.helpers[symbol] = f"@{symbol} = internal unnamed_addr constant {kind} [{listed}]\n"

    def one(place: str) -> str:
        address, number = body.new_name(), body.new_name()
        body.lines.append(f"  {address} = getelementptr {kind}, ptr @{symbol}, i64 0, i64 {place}")
        body.lines.append(f"  {number} = load double, ptr {address}")
        return number

    if body.lanes == 1:
        return Value(body, one(index.name), "f64")
    # Scalar loads are faster than a gather.
    found, double, integers = "poison", body.type("f64"), body.type("i64")
    for lane in range(body.lanes):
        place, together = body.new_name(), body.new_name()
        body.lines.append(f"  {place} = extractelement {integers} {index.name}, i64 {lane}")
        number = one(place)
        body.lines.append(
            f"  {together} = insertelement {double} {found}, double {number}, i64 {lane}"
        )
        found = together
    return Value(body, found, "f64")
