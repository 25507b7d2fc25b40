"""Functions that take the place of PyTensor's, and do the same in less time.

A drop-in looks like what it replaces: the same name and signature, and a code object that says it
comes from the same file. PyTensor looks at the files of the frames on the stack, to find the line
of the user's that a variable was made in, and passes over its own; and it notes a limited number of
them. With a file of ours among them it would name that as the user's.
"""

from __future__ import annotations

import ast
from functools import update_wrapper
from opcode import opmap, opname
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pytensor_fuse._pytensor.ground import REPLACED_CODES, plain_function
from pytensor_fuse._pytensor.sources import NoSourceError, definition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytensor_fuse._pytensor.patches import Patch

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
    """Return ``code``, and the code in it, as if they came from where ``stock`` does."""
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
    """Let a function that drop-ins call say that its code comes from the file of ``stock``, too."""
    filename = plain_function(stock).__code__.co_filename

    def disguise(function: _F) -> _F:
        code: Any = function
        code.__code__ = _moved(code.__code__, filename, 0)
        return function

    return disguise


class DropIn:
    """A method of a class, or a function of a module, is another one, and its own again.

    Parameters
    ----------
    owner
        The class or module.
    name
        Of the method. One that the owner inherits gets one of its own.
    function
        What takes its place: a function, which is disguised, or anything else, which is not.
    """

    def __init__(self, owner: Any, name: str, function: object) -> None:
        self._owner = owner
        self._name = name
        self._function = function
        self._value: object = None
        self._stock: object = _ABSENT
        self._is_applied = False

    def prepare(self) -> None:
        """Look whether the owner has such a method, and make the one that takes its place."""
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
        """Put it there."""
        if not self._is_applied:
            self._stock = vars(self._owner).get(self._name, _ABSENT)
            setattr(self._owner, self._name, self._value)
            self._is_applied = True

    def undo(self) -> None:
        """Put back what was there, but where somebody has put something else in its place.

        That is theirs to undo, and may call ours.
        """
        if not self._is_applied or vars(self._owner).get(self._name) is not self._value:
            return
        if self._stock is _ABSENT:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._stock)
        self._is_applied = False

    def holds(self) -> bool:
        """Whether it is there."""
        return self._is_applied and vars(self._owner).get(self._name) is self._value


class BoundDropIn(DropIn):
    """One object has a method of its own, in the place of that of its class."""

    def __init__(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        super().__init__(owner, name, MethodType(function, owner))


class AddedMethod(DropIn):
    """A class has a method that it neither has nor inherits otherwise."""

    def prepare(self) -> None:
        """Look whether there is none."""
        if not self._is_applied and hasattr(self._owner, self._name):
            raise AttributeError(f"{self._owner!r} has a method {self._name} already")
        self._value = self._function


class _OtherCode:
    """A function of a module runs other code, and its own again.

    Whoever has imported the function by name follows. Where there is no other code for it, it goes
    on with its own.
    """

    def __init__(self, stock: Any) -> None:
        self._function = stock
        self._stock_code: CodeType | None = None
        self._code: CodeType | None = None

    def _made(self) -> CodeType | None:
        """Return the other code."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Make the code."""
        if self._stock_code is None:
            self._stock_code = self._function.__code__
            self._code = self._made()
            if self._code is not None:
                REPLACED_CODES[self._code] = self._stock_code

    def apply(self) -> None:
        """Let the function run it."""
        if self._code is not None and self._function.__code__ is self._stock_code:
            self._function.__code__ = self._code

    def undo(self) -> None:
        """Let the function run its own."""
        if self._code is not None and self._function.__code__ is self._code:
            self._function.__code__ = self._stock_code

    def holds(self) -> bool:
        """Whether the function runs it."""
        return self._code is not None and self._function.__code__ is self._code


class ReplacedCode(_OtherCode):
    """A function of a module runs the code of another one, and its own again.

    The code takes its globals from the module of the function.

    Parameters
    ----------
    stock
        The function.
    function
        A function of the same parameters and defaults without a closure.
    """

    def __init__(self, stock: Any, function: Any) -> None:
        super().__init__(stock)
        self._ours = function

    def _made(self) -> CodeType:
        return disguised_code(self._ours.__code__, self._function.__code__)


class AroundBody(_OtherCode):
    """What a function of a module does, it does between two calls; there is no frame around it.

    Warnings count frames to find the line of the user's that they are about, so that a function
    that users call cannot be called by one of ours. Its body is compiled anew from its source,
    within a ``try``; lines stay where they are. Where there is no source, or it is not that of the
    function, this does nothing.

    Parameters
    ----------
    stock
        The function.
    module
        The name of a module with two functions: ``begin``, which is called without arguments, and
        ``end``, which is called at last with what that has returned.
    """

    def __init__(self, stock: Any, module: str) -> None:
        super().__init__(stock)
        self._module = module

    def _made(self) -> CodeType | None:
        return _around_body(self._function, self._module)

    def holds(self) -> bool:
        """Whether the function runs it, if it can."""
        return self._code is None or super().holds()


_BEGIN, _END, _BEGAN = (f"_pytensor_fuse_{name}" for name in ("begin", "end", "began"))


def _around_body(function: Any, module: str) -> CodeType | None:
    """Return the code of a function whose body is between two calls; None without its source."""
    code: CodeType = function.__code__
    try:
        definition = definition_of(code, function.__module__)
    except (NoSourceError, OSError):
        return None
    if definition is None:
        return None
    parsed = ast.Module([definition], type_ignores=[])
    if _what(_code_in(parsed, code)) != _what(code):
        return None
    around = ast.parse(
        f"from {module} import begin as {_BEGIN}, end as {_END}\n"
        f"{_BEGAN} = {_BEGIN}()\n"
        f"try:\n    pass\nfinally:\n    {_END}({_BEGAN})"
    )
    has_doc = ast.get_docstring(definition, clean=False) is not None
    doc, body = definition.body[:has_doc], definition.body[has_doc:]
    for node in ast.walk(around):
        ast.copy_location(node, body[0])
    *before, attempt = around.body
    assert isinstance(attempt, ast.Try)
    attempt.body = body
    definition.body = [*doc, *before, attempt]
    return _code_in(parsed, code)


def _code_in(parsed: ast.Module, like: CodeType) -> CodeType | None:
    """Return the code of the function in a module, compiled for the file of ``like``."""
    compiled = compile(parsed, like.co_filename, "exec", dont_inherit=True)
    for constant in compiled.co_consts:
        if isinstance(constant, CodeType) and constant.co_name == like.co_name:
            return constant
    return None


_OPERATORS: Final = frozenset(
    number
    for name, number in opmap.items()
    if name.startswith(
        ("BINARY_", "COMPARE_", "CONTAINS_", "IS_", "UNARY_", "POP_JUMP_", "JUMP_IF_")
    )
)


def _what(code: CodeType | None) -> tuple[Any, ...] | None:
    """Return what tells a code from that of other sources: names, literals, operators and lines.

    How a module's imports are called depends on whether they are compiled along with the function.
    """
    if code is None:
        return None
    lines = {line for _, _, line in code.co_lines()}
    literals = [
        _what(one) if isinstance(one, CodeType) else (type(one), one) for one in code.co_consts
    ]
    steps = zip(code.co_code[::2], code.co_code[1::2], strict=True)
    # Jumps go by distances, which differ.
    operators = [
        (
            step,
            argument if opname[step].startswith(("BINARY_", "COMPARE_", "CONTAINS_", "IS_")) else 0,
        )
        for step, argument in steps
        if step in _OPERATORS
    ]
    return code.co_varnames, code.co_names, code.co_firstlineno, lines, literals, operators


class Together:
    """Patches that are applied and undone together."""

    def __init__(self, patches: Iterable[Patch]) -> None:
        self._patches = tuple(patches)

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
