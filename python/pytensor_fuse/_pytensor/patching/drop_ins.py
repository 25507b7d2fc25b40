"""Drop-ins: functions that replace PyTensor's, and compute the same in less time.

A drop-in looks like the function that it replaces: it has the same name and signature, and its code
object names the same file. To find the user's line that made a variable, PyTensor looks at the
files of the frames on the stack and skips its own; it records only a limited number of frames. It
would take a file of this package for the user's.
"""

from __future__ import annotations

from functools import update_wrapper
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, TypeVar

from pytensor_fuse._pytensor.compat.checks import REPLACED_CODES, plain_function

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._pytensor.patching.patches import Patch

_F = TypeVar("_F")

_ABSENT = object()


def disguised(function: FunctionType, stock: object) -> FunctionType:
    """Return ``function`` with the names, the file and the first line of ``stock``."""
    plain = plain_function(stock)
    made = FunctionType(
        disguised_code(function.__code__, plain.__code__),
        function.__globals__,
        plain.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    update_wrapper(made, plain)
    return made


def disguised_code(code: CodeType, stock: CodeType) -> CodeType:
    """Return ``code``, and the code nested in it, with the file and line of ``stock``."""
    shift = stock.co_firstlineno - code.co_firstlineno
    return _moved(code, stock.co_filename, shift).replace(
        co_name=stock.co_name, co_qualname=stock.co_qualname
    )


def _moved(code: CodeType, filename: str, shift: int) -> CodeType:
    constants = tuple(
        _moved(constant, filename, shift) if isinstance(constant, CodeType) else constant
        for constant in code.co_consts
    )
    first = max(1, code.co_firstlineno + shift)
    return code.replace(co_filename=filename, co_firstlineno=first, co_consts=constants)


def in_file_of(stock: object) -> Callable[[_F], _F]:
    """Let the code of a function that drop-ins call name the file of ``stock``, too."""
    filename = plain_function(stock).__code__.co_filename

    def disguise(function: _F) -> _F:
        code: Any = function
        code.__code__ = _moved(code.__code__, filename, 0)
        return function

    return disguise


class DropIn:
    """Replaces a method of a class, or a function of a module, reversibly.

    Parameters
    ----------
    owner
        The class or module.
    name
        Name of the method. If the owner inherits it, the owner gets a method of its own.
    function
        The replacement: a function, which is disguised, or another object, which is not.
    """

    def __init__(self, owner: Any, name: str, function: object) -> None:
        self._owner = owner
        self._name = name
        self._function = function
        self._value: object = None
        self._stock: object = _ABSENT
        self._is_applied = False

    def prepare(self) -> None:
        """Check that the owner has such a method, and create the replacement."""
        stock = getattr(self._owner, self._name)
        if self._value is None:
            function = self._function
            if isinstance(function, FunctionType):
                function = disguised(function, stock)
                if isinstance(vars(self._owner).get(self._name), staticmethod):
                    self._value = staticmethod(function)
                    return
            self._value = function

    def apply(self) -> None:
        """Install the replacement."""
        if not self._is_applied:
            self._stock = vars(self._owner).get(self._name, _ABSENT)
            setattr(self._owner, self._name, self._value)
            self._is_applied = True

    def undo(self) -> None:
        """Restore the original, except where something else has replaced ours.

        Such a replacement may call ours, and its author has to undo it.
        """
        if not self._is_applied or vars(self._owner).get(self._name) is not self._value:
            return
        if self._stock is _ABSENT:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._stock)
        self._is_applied = False

    def holds(self) -> bool:
        """Whether the replacement is installed."""
        return self._is_applied and vars(self._owner).get(self._name) is self._value


class BoundDropIn(DropIn):
    """Gives one object a method of its own that overrides the method of its class."""

    def __init__(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        super().__init__(owner, name, MethodType(function, owner))


class AddedMethod(DropIn):
    """Adds a method to a class that neither has nor inherits one of that name."""

    def prepare(self) -> None:
        """Check that there is no such method."""
        if not self._is_applied and hasattr(self._owner, self._name):
            raise AttributeError(f"{self._owner!r} has a method {self._name} already")
        self._value = self._function


class ReplacedCode:
    """Makes a function of a module run the code of another one, reversibly.

    Modules that have imported the function by name are affected as well. The code uses the globals
    of the function's module.

    Parameters
    ----------
    stock
        The function.
    function
        A function with the same parameters and defaults, and without a closure.
    """

    def __init__(self, stock: Any, function: Any) -> None:
        self._function = stock
        self._ours = function
        self._stock_code: CodeType | None = None
        self._code: CodeType | None = None

    def prepare(self) -> None:
        """Create the code."""
        if self._stock_code is None:
            self._stock_code = self._function.__code__
            self._code = disguised_code(self._ours.__code__, self._function.__code__)
            REPLACED_CODES[self._code] = self._stock_code

    def apply(self) -> None:
        """Make the function run the code."""
        if self._code is not None and self._function.__code__ is self._stock_code:
            self._function.__code__ = self._code

    def undo(self) -> None:
        """Restore the function's own code."""
        if self._code is not None and self._function.__code__ is self._code:
            self._function.__code__ = self._stock_code

    def holds(self) -> bool:
        """Whether the function runs the code."""
        return self._code is not None and self._function.__code__ is self._code


class Together:
    """Patches that are applied and undone together."""

    def __init__(self, *patches: Patch) -> None:
        self._patches = patches

    def prepare(self) -> None:
        """Prepare all."""
        for patch in self._patches:
            patch.prepare()

    def apply(self) -> None:
        """Apply all; none if one fails."""
        try:
            for patch in self._patches:
                patch.apply()
        except BaseException:
            self.undo()
            raise

    def undo(self) -> None:
        """Undo all, the last one first."""
        for patch in reversed(self._patches):
            patch.undo()

    def holds(self) -> bool:
        """Whether all hold."""
        return all(patch.holds() for patch in self._patches)
