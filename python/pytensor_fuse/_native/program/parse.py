"""Parser of program text, in the format that `pytensor_fuse._native.program.text` describes."""

from __future__ import annotations

import builtins
import importlib
import json
from typing import TYPE_CHECKING, Any, Final, cast

from pytensor_fuse._native.program import model
from pytensor_fuse._native.program.errors import ParseError
from pytensor_fuse._native.program.lines import Line, read_lines
from pytensor_fuse._native.program.model import COMBINERS, DTYPES, Program

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.program.model import Statement, Value

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


class _Parser:
    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines
        self._at = 0
        self._program = Program()
        self._dtypes: dict[Value, str] = {}
        self._fields: dict[str, Callable[[Line], Any]] = {
            "%": Line.value,
            "%:": self._define,
            "@": Line.buffer,
            "#": Line.natural,
            "NAME": Line.take,
            "DTYPE": lambda line: line.one_of(DTYPES, "a dtype"),
            "COMBINER": lambda line: line.one_of(COMBINERS, "a combiner"),
            "KIND": lambda line: line.one_of(_KINDS, "a kind of buffer"),
            "[%]": lambda line: line.values("[", "]"),
            "(%)": lambda line: line.values("(", ")"),
        }

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

    def _read(self, line: Line, form: str) -> list[Any]:
        """Read tokens in a form, and return the values of its fields.

        Parameters
        ----------
        line
            The line.
        form
            Names of fields, and tokens that are expected as they are, separated by spaces.
        """
        values = []
        for item in form.split():
            field = self._fields.get(item)
            if field is None:
                line.expect(item)
            else:
                values.append(field(line))
        return values

    def _define(self, line: Line) -> Value:
        value = line.value()
        [self._dtypes[value]] = self._read(line, ": DTYPE")
        return value

    # Declarations

    def _declaration(self, line: Line) -> None:
        program = self._program
        if line.next[:1] == "%":
            self._constant_or_length(line)
        elif line.takes("failure"):
            self._failure(line)
        elif line.takes("buffer"):
            if line.buffer() != len(program.buffers):
                raise line.error(f"expected buffer @{len(program.buffers)}")
            about = self._read(line, "KIND # DTYPE [%]")
            program.buffers.append(model.Buffer(*about, is_once=line.takes("once")))
        elif line.takes("result"):
            kind = line.one_of(("buffer", "input", "output"), "a kind of result")
            number = line.buffer() if kind == "buffer" else line.natural()
            program.results.append(model.Result(cast("Any", kind), number))
        else:
            raise line.error(f"expected a declaration or 'body', not {line.next!r}")

    def _constant_or_length(self, line: Line) -> None:
        [value] = self._read(line, "%: =")
        if line.takes("length"):
            buffer, axis = self._read(line, "@ , #")
            self._program.lengths[value] = buffer, axis
            return
        [text] = self._read(line, "constant NAME")
        dtype = self._dtypes[value]
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
        self._program.failures.append(model.Failure(exception, message))

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
        # The blocks and the results of loops and branches come on later lines.
        if line.takes("for"):
            return self._loop(line)
        if line.takes("if"):
            return self._branch(line)
        statement = self._simple(line)
        line.end()
        return statement

    def _simple(self, line: Line) -> Statement:
        """Parse a statement of one line."""
        if line.next[:1] == "%":
            return self._definition(line)
        if line.takes("store"):
            is_guarded = line.takes("guarded")
            combiner = "" if line.next[:1] == "@" else self._read(line, "COMBINER")[0]
            buffer, index, value = self._read(line, "@ [%] = %")
            return model.Store(buffer, index, value, combiner, is_guarded=is_guarded)
        if line.takes("check"):
            condition, failure = self._read(line, "% else #")
            return model.Check(condition, failure, line.values("(", ")") if line.next else ())
        if line.takes("allocate"):
            return model.Allocate(line.buffer())
        if line.takes("call"):
            return self._call(line, None)
        raise line.error(f"expected a statement, not {line.next!r}")

    def _definition(self, line: Line) -> Statement:
        [out] = self._read(line, "%: =")
        if line.takes("load"):
            is_guarded = line.takes("guarded")
            return model.Load(out, *self._read(line, "@ [%]"), is_guarded=is_guarded)
        if line.takes("call"):
            return self._call(line, out)
        if line.takes("draw"):
            name, args, generator = self._read(line, "NAME (%) @")
            return model.Draw(out, name, generator, args)
        name, *operands = self._read(line, "NAME %")
        while line.takes(","):
            operands.append(line.value())
        return model.Op(out, name, tuple(operands))

    def _call(self, line: Line, out: Value | None) -> Statement:
        name, sizes = self._read(line, "NAME (%)")
        operands: list[model.Operand] = []
        while not operands or line.takes(","):
            buffer = line.buffer()
            operands.append(
                model.Operand(buffer, line.values("[", "]") if line.next == "[" else ())
            )
        return model.Call(name, sizes, tuple(operands), out)

    def _following(self, head: Line, form: str) -> list[Any] | None:
        """Read the next line if it belongs to a loop or a branch and has a form.

        Parameters
        ----------
        head
            The first line of the statement.
        form
            A form for `_read`, whose first word must match.
        """
        if self._at == len(self._lines):
            return None
        line = self._lines[self._at]
        if line.indent != head.indent or line.next != form.split()[0]:
            return None
        values = self._read(self._advance(), form)
        line.end()
        return values

    def _loop(self, line: Line) -> Statement:
        index, extent = self._read(line, "%: < %")
        pending: list[list[Value]] = []
        if line.takes("carrying"):
            while not pending or line.takes(","):
                pending.append(self._read(line, "%: = %"))
        line.end()
        body = self._block(line.indent)
        [until] = self._following(line, "until %") or [None]
        reductions: list[model.Reduction] = []
        while fields := self._following(line, "reduce %: = COMBINER % , %"):
            reductions.append(model.Reduction(*fields))
        carries: list[model.Carry] = []
        for inner, initial in pending:
            fields = self._following(line, f"carry %: = %{inner} <- %")
            if fields is None:
                raise line.error(f"expected a line 'carry' for %{inner} after the loop")
            out, following = fields
            carries.append(model.Carry(out, inner, initial, following))
        return model.For(index, extent, body, reductions, carries, until)

    def _branch(self, line: Line) -> Statement:
        condition = line.value()
        line.end()
        then = self._block(line.indent)
        has_other = self._following(line, "else") is not None
        otherwise = self._block(line.indent) if has_other else []
        choices: list[model.Choice] = []
        while fields := self._following(line, "choice %: = % | %"):
            choices.append(model.Choice(*fields))
        return model.If(condition, then, otherwise, choices)
