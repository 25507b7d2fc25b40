"""Parser of program text, in the format that `pytensor_fuse._native.program.text` describes."""

from __future__ import annotations

import builtins
import importlib
import json
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from pytensor_fuse._native.program.errors import ParseError
from pytensor_fuse._native.program.lines import Line, read_lines
from pytensor_fuse._native.program.model import (
    COMBINERS,
    DTYPES,
    Allocate,
    Buffer,
    Call,
    Carry,
    Check,
    Choice,
    Draw,
    Failure,
    For,
    If,
    Load,
    Op,
    Operand,
    Program,
    Reduction,
    Result,
    Store,
)

if TYPE_CHECKING:
    from typing import Literal

    from pytensor_fuse._native.program.model import BufferKind, Statement, Value

_KINDS: Final = ("input", "constant", "temporary", "output")


def parse_program(text: str) -> Program:
    """Return the program of a text.

    Parameters
    ----------
    text
        The output of `print_program`, or text written by hand.

    Returns
    -------
    Program
        The program, which need not pass `verify`. An id below the greatest that the text does not
        define has the empty string as its dtype.

    Raises
    ------
    ParseError
        The text does not describe a program.
    """
    return _Parser(read_lines(text)).parse()


def parse_number(dtype: str, text: str) -> bool | int | float:
    """Return the number of a literal's text; raise ``ValueError`` if it is none of the dtype."""
    if dtype == "bool":
        return {"true": True, "false": False}[text]
    if dtype[0] != "f":
        return int(text)
    return float.fromhex(text) if "x" in text else float(text)


def _resolve(name: str) -> type[BaseException] | None:
    """Return the exception class of a dotted name; a name without a dot is a builtin."""
    parts = name.split(".")
    found: object = None
    if len(parts) == 1:
        found = getattr(builtins, name, None)
    # A class may be nested in a class: the module is the longest importable prefix.
    for n_module in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n_module]))
        except ImportError:
            continue
        for part in parts[n_module:]:
            found = getattr(found, part, None)
        break
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


class _Pending(NamedTuple):
    """The part of a carry that the head of a loop declares; the rest comes after the body."""

    inner: Value
    initial: Value


class _Parser:
    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines
        self._at = 0
        self._program = Program()
        self._dtypes: dict[Value, str] = {}

    def parse(self) -> Program:
        program = self._program
        if not self._lines:
            raise ParseError("line 1: expected 'program', not the end of the text")
        first = self._advance()
        first.expect("program")
        program.reassociates = first.takes("reassociates")
        program.calls_libm = first.takes("libm")
        first.end()
        while True:
            if self._at == len(self._lines):
                raise self._lines[-1].error("expected 'body' after this line")
            line = self._advance()
            if line.takes("body"):
                line.end()
                break
            self._declaration(line)
            line.end()
        if self._at < len(self._lines):
            program.body = self._block(0)
        if self._at < len(self._lines):
            raise self._lines[self._at].error("a line of the body must be indented")
        n_values = max(self._dtypes, default=-1) + 1
        program.dtypes = [self._dtypes.get(value, "") for value in range(n_values)]
        return program

    def _advance(self) -> Line:
        self._at += 1
        return self._lines[self._at - 1]

    def _define(self, line: Line) -> Value:
        value = line.value()
        line.expect(":")
        self._dtypes[value] = line.one_of(DTYPES, "a dtype")
        return value

    # Declarations

    def _declaration(self, line: Line) -> None:
        if line.next[:1] == "%":
            self._constant_or_length(line)
        elif line.takes("failure"):
            self._failure(line)
        elif line.takes("buffer"):
            self._buffer(line)
        elif line.takes("result"):
            kind = line.one_of(("buffer", "input", "output"), "a kind of result")
            number = line.buffer() if kind == "buffer" else line.natural()
            self._program.results.append(
                Result(cast("Literal['buffer', 'input', 'output']", kind), number)
            )
        else:
            raise line.error(f"expected a declaration or 'body', not {line.next!r}")

    def _constant_or_length(self, line: Line) -> None:
        value = self._define(line)
        line.expect("=")
        if line.takes("length"):
            buffer = line.buffer()
            line.expect(",")
            self._program.lengths[value] = buffer, line.natural()
            return
        line.expect("constant")
        dtype, text = self._dtypes[value], line.take()
        try:
            self._program.constants[value] = parse_number(dtype, text)
        except (KeyError, ValueError, OverflowError):
            raise line.error(f"{text!r} is not a number of dtype {dtype}") from None

    def _failure(self, line: Line) -> None:
        if line.natural() != len(self._program.failures):
            raise line.error(f"expected failure {len(self._program.failures)}")
        name, text = line.take(), line.take()
        exception = _resolve(name)
        if exception is None:
            raise line.error(f"{name!r} is not an exception")
        try:
            message = json.loads(text)
        except ValueError:
            message = None
        if not isinstance(message, str):
            raise line.error(f"expected a message in double quotes, not {text!r}")
        self._program.failures.append(Failure(exception, message))

    def _buffer(self, line: Line) -> None:
        if line.buffer() != len(self._program.buffers):
            raise line.error(f"expected buffer @{len(self._program.buffers)}")
        kind = cast("BufferKind", line.one_of(_KINDS, "a kind of buffer"))
        position = line.natural()
        dtype = line.one_of(DTYPES, "a dtype")
        lengths = line.values("[", "]")
        once = line.takes("once")
        self._program.buffers.append(Buffer(kind, position, dtype, lengths, is_once=once))

    # Statements

    def _block(self, outer: int) -> list[Statement]:
        """Parse the lines that are indented by more than ``outer``."""
        statements: list[Statement] = []
        if self._at == len(self._lines) or self._lines[self._at].indent <= outer:
            return statements
        indent = self._lines[self._at].indent
        while self._at < len(self._lines) and self._lines[self._at].indent > outer:
            line = self._advance()
            if line.indent != indent:
                raise line.error(f"expected an indentation of {indent}, not {line.indent}")
            statements.append(self._statement(line))
        return statements

    def _statement(self, line: Line) -> Statement:
        if line.next[:1] == "%":
            return self._definition(line)
        if line.takes("store"):
            return self._store(line)
        if line.takes("for"):
            return self._loop(line)
        if line.takes("if"):
            return self._branch(line)
        if line.takes("check"):
            condition = line.value()
            line.expect("else")
            failure = line.natural()
            details = line.values("(", ")") if line.next else ()
            line.end()
            return Check(condition, failure, details)
        if line.takes("allocate"):
            buffer = line.buffer()
            line.end()
            return Allocate(buffer)
        if line.takes("call"):
            return self._call(line, None)
        raise line.error(f"expected a statement, not {line.next!r}")

    def _definition(self, line: Line) -> Statement:
        out = self._define(line)
        line.expect("=")
        if line.takes("load"):
            is_guarded = line.takes("guarded")
            buffer = line.buffer()
            index = line.values("[", "]")
            line.end()
            return Load(out, buffer, index, is_guarded=is_guarded)
        if line.takes("call"):
            return self._call(line, out)
        if line.takes("draw"):
            name = line.take()
            args = line.values("(", ")")
            generator = line.buffer()
            line.end()
            return Draw(out, name, generator, args)
        name = line.take()
        operands = [line.value()]
        while line.takes(","):
            operands.append(line.value())
        line.end()
        return Op(out, name, tuple(operands))

    def _call(self, line: Line, out: Value | None) -> Statement:
        name = line.take()
        sizes = line.values("(", ")")
        operands: list[Operand] = []
        while not operands or line.takes(","):
            buffer = line.buffer()
            operands.append(Operand(buffer, line.values("[", "]") if line.next == "[" else ()))
        line.end()
        return Call(name, sizes, tuple(operands), out)

    def _store(self, line: Line) -> Statement:
        is_guarded = line.takes("guarded")
        combiner = line.one_of(COMBINERS, "a combiner") if line.next[:1] != "@" else ""
        buffer = line.buffer()
        index = line.values("[", "]")
        line.expect("=")
        value = line.value()
        line.end()
        return Store(buffer, index, value, combiner, is_guarded=is_guarded)

    def _next_is(self, indent: int, word: str) -> bool:
        """Whether the next line has an indentation and begins with a word."""
        if self._at == len(self._lines):
            return False
        line = self._lines[self._at]
        return line.indent == indent and line.next == word

    def _loop(self, line: Line) -> Statement:
        index = self._define(line)
        line.expect("<")
        extent = line.value()
        pending: list[_Pending] = []
        if line.takes("carrying"):
            while not pending or line.takes(","):
                inner = self._define(line)
                line.expect("=")
                pending.append(_Pending(inner, line.value()))
        line.end()
        body = self._block(line.indent)
        until: Value | None = None
        if self._next_is(line.indent, "until"):
            after = self._advance()
            after.expect("until")
            until = after.value()
            after.end()
        reductions: list[Reduction] = []
        while self._next_is(line.indent, "reduce"):
            after = self._advance()
            after.expect("reduce")
            out = self._define(after)
            after.expect("=")
            combiner = after.one_of(COMBINERS, "a combiner")
            initial = after.value()
            after.expect(",")
            reductions.append(Reduction(out, combiner, initial, after.value()))
            after.end()
        carries: list[Carry] = []
        for inner, initial in pending:
            if not self._next_is(line.indent, "carry"):
                raise line.error(f"expected a line 'carry' for %{inner} after the loop")
            after = self._advance()
            after.expect("carry")
            out = self._define(after)
            after.expect("=")
            after.expect(f"%{inner}")
            after.expect("<-")
            carries.append(Carry(out, inner, initial, after.value()))
            after.end()
        return For(index, extent, body, reductions, carries, until)

    def _branch(self, line: Line) -> Statement:
        condition = line.value()
        line.end()
        then = self._block(line.indent)
        otherwise: list[Statement] = []
        if self._next_is(line.indent, "else"):
            after = self._advance()
            after.expect("else")
            after.end()
            otherwise = self._block(line.indent)
        choices: list[Choice] = []
        while self._next_is(line.indent, "choice"):
            after = self._advance()
            after.expect("choice")
            out = self._define(after)
            after.expect("=")
            value = after.value()
            after.expect("|")
            choices.append(Choice(out, value, after.value()))
            after.end()
        return If(condition, then, otherwise, choices)
