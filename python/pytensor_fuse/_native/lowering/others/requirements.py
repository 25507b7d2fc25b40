"""Requirements on the results and arguments of third-party rules, each with a clear exception."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pytensor_fuse._native.lowering.values import Value
from pytensor_fuse._native.program.blocks import Loop
from pytensor_fuse._native.program.failures import raised_by, unfilled
from pytensor_fuse._native.program.model import DTYPES, Failure
from pytensor_fuse._native.program.operations import FLOATS

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.values import OwningBuilder

_HOW: Final = "a literal is builder.constant(dtype, number), an index builder.index(number)"


def require_value(builder: OwningBuilder, one: object, what: str) -> Value:
    """Require a value of the builder's program, and return it.

    Raises
    ------
    TypeError
        If it is not a value.
    ValueError
        If it is a value of another program.
    """
    if type(one) is not Value:
        raise TypeError(f"{what} is {one!r}, and no value of the program: {_HOW}")
    if not builder.owns(one):
        raise ValueError(f"{what} is a value of another program: a rule cannot keep values")
    return one


def require_index(builder: OwningBuilder, index: object, ndim: int) -> None:
    """Require a tuple of a value for each axis.

    Raises
    ------
    TypeError
        If it is not such a tuple.
    """
    if not isinstance(index, tuple | list) or len(index) != ndim:
        raise TypeError(f"an index of {ndim} axes is a tuple of as many values, not {index!r}")
    for one in index:
        require_value(builder, one, "an index")


def require_element(
    builder: OwningBuilder, value: object, dtype: str, what: str = "an element"
) -> None:
    """Require a value of a dtype.

    Raises
    ------
    TypeError
        If it is not a value, or has another dtype.
    """
    found = builder.program.dtypes[require_value(builder, value, what)]
    if found != dtype:
        raise TypeError(f"{what} is {found}, and has to be {dtype}; builder.cast converts")


def require_dtype(dtype: object) -> None:
    """Require the name of a dtype of programs.

    Raises
    ------
    TypeError
        If it is not such a name.
    """
    if dtype not in DTYPES:
        raise TypeError(f"{dtype!r} is no dtype of programs{near(dtype, DTYPES)}")


def require_literal(dtype: str, number: object) -> bool | int | float:
    """Require a number that a dtype can represent, and return it as a Python number.

    Raises
    ------
    TypeError
        If it is not such a number.
    """
    if type(number) is Value:
        raise TypeError("a literal is a number of Python's, and this is a value of the program")
    if dtype == "bool":
        if not isinstance(number, bool | np.bool_):
            raise TypeError(f"a literal of bool is True or False, not {number!r}")
        return bool(number)
    if dtype in FLOATS:
        if not isinstance(number, Real):
            raise TypeError(f"a literal of {dtype} is a real number, not {number!r}")
        return float(number)
    if not isinstance(number, int | np.integer):
        raise TypeError(f"a literal of {dtype} is an integer, not {number!r}")
    limits = np.iinfo(f"{dtype[0]}{int(dtype[1:]) // 8}")
    if not limits.min <= number <= limits.max:
        raise TypeError(
            f"a literal of {dtype} is from {limits.min} to {limits.max}, and {number!r} is not"
        )
    return int(number)


def require_failure(exception: object, message: object, n_details: int) -> None:
    """Require an exception class and a message from which a check can construct an exception.

    Raises
    ------
    TypeError
        If it is not an exception class, or the construction fails.
    ValueError
        If the message has placeholders beyond the details.
    """
    if not isinstance(exception, type) or not issubclass(exception, BaseException):
        raise TypeError(f"a check raises a class of exceptions, and {exception!r} is none")
    if not isinstance(message, str):
        raise TypeError(f"the message of a check is a text, not {message!r}")
    places = unfilled(message, n_details)
    if places:
        raise ValueError(
            f"the message {message!r} has {', '.join(places)}, and the check has {n_details} "
            "details: {0} is the first, and {{0}} stands for itself"
        )
    failure, details = Failure(exception, message), (0,) * n_details
    try:
        made: object = raised_by(failure, details)
    except Exception as error:
        raise TypeError(f"{exception.__name__} cannot be made from a text: {error}") from error
    if not isinstance(made, BaseException):
        raise TypeError(f"{exception.__name__} of a text is not an exception, but {made!r}")


def require_innermost(builder: OwningBuilder, loop: object, what: str) -> None:
    """Require the innermost open loop, with no block open inside of it.

    Raises
    ------
    TypeError
        If it is not a loop.
    ValueError
        If it is another loop.
    """
    if not isinstance(loop, Loop):
        raise TypeError(f"{what} has {loop!r} instead of the loop that builder.loop returns")
    require_value(builder, loop.index, "the index of a loop")
    if not builder.is_visible(loop.index):
        raise ValueError(f"{what} after the loop has ended: it belongs inside of the with block")
    if builder.depth(loop.index) != builder.n_open_blocks - 1:
        raise ValueError(f"{what} inside of another block of the loop: it belongs outside of that")


def near(name: object, names: Any) -> str:
    """Return the names that are similar to an unknown one, as the end of a message."""
    import difflib

    found = difflib.get_close_matches(str(name), list(names), cutoff=0.5)
    return f"; near are {', '.join(found)}" if found else f"; there are {', '.join(names)}"
