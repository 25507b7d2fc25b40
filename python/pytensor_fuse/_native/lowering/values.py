"""Values of the program as rules handle them: ids on which Python arithmetic raises.

Ids are integers, so that tables of all values are lists. A rule that mistook an id for the number
that it stands for would silently compute something else: arithmetic on ids therefore raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor_fuse._native.program.builder import Builder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.program.blocks import Block

# The operations that a rule must use instead of Python's operators, where their names differ.
_OPERATIONS: Final = {
    "truediv": "div",
    "lshift": "shl",
    "rshift": "shr",
    "invert": "not",
    "round": "rint",
}
# Binary operators, which Python also looks up reflected on the second operand.
_REFLECTED: Final = "add sub mul truediv floordiv mod pow and or xor lshift rshift"
_OTHERS: Final = "lt le gt ge neg abs invert round trunc floor ceil"


class Value(int):
    """The id of a value. Equal ids are the same value; `Builder.number` returns literals."""

    __slots__ = ()


def _refused(what: str) -> Callable[..., Any]:
    def refuse(*_: object) -> Any:
        raise TypeError(f"a value of the program is not a number: use {what}")

    return refuse


for _name in (*_REFLECTED.split(), *_OTHERS.split()):
    _refuse = _refused(f'builder.op("{_OPERATIONS.get(_name, _name)}", ...)')
    setattr(Value, f"__{_name}__", _refuse)
    if _name in _REFLECTED.split():
        setattr(Value, f"__r{_name}__", _refuse)
for _name in ("pos", "divmod", "rdivmod"):
    setattr(Value, f"__{_name}__", _refused("the operations of builder.op"))
for _name in ("int", "float", "bool"):
    setattr(Value, f"__{_name}__", _refused("builder.number(value) where it may be a literal"))

_MOST: Final = 1024
# Ids are shared by all programs, so that small ones need no allocation.
_FIRST: Final = tuple([Value(number) for number in range(_MOST)])


class RuleBuilder(Builder):
    """The builder for rules, whose values refuse accidental arithmetic."""

    def _new(self, dtype: str, home: Block) -> Value:
        number = len(self._dtypes)
        self._dtypes.append(dtype)
        self._homes.append(home)
        return _FIRST[number] if number < _MOST else Value(number)


class OwningBuilder(RuleBuilder):
    """A builder whose values are objects of its own, distinct from those of other programs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._values: list[Value] = []

    def _new(self, dtype: str, home: Block) -> Value:
        value = Value(len(self._dtypes))
        self._dtypes.append(dtype)
        self._homes.append(home)
        self._values.append(value)
        return value

    def owns(self, value: Value) -> bool:
        """Whether a value belongs to the program."""
        number = int.__index__(value)
        return number < len(self._values) and self._values[number] is value
