"""Tokenizer of program text: the tokens of each line, consumed from the left."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.program.errors import ParseError

if TYPE_CHECKING:
    from pytensor_fuse._native.program.model import BufferId, Value

_TOKEN: Final = re.compile(
    r"""\s*(?: (?P<comment>\#.*)
             | (?P<token> "(?:[^"\\]|\\.)*" | %\d+ | @\d+ | <- | [-+\w.]+ | [:=<\[\](),|] ) )""",
    re.VERBOSE,
)


class Line:
    """The tokens of a line, consumed from the left."""

    def __init__(self, number: int, indent: int, tokens: list[str]) -> None:
        self.number = number
        self.indent = indent
        self._tokens = tokens
        self._at = 0

    def error(self, message: str) -> ParseError:
        return ParseError(f"line {self.number}: {message}")

    @property
    def next(self) -> str:
        """The next token, not consumed; empty at the end of the line."""
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self) -> str:
        token = self.next
        self._at += 1
        return token

    def takes(self, token: str) -> bool:
        """Consume a token if it comes next; return whether it does."""
        is_next = self.next == token
        self._at += is_next
        return is_next

    def expect(self, token: str) -> None:
        if not self.takes(token):
            raise self.error(f"expected {token!r}, not {self.next or 'the end of the line'!r}")

    def _marked(self, mark: str, what: str) -> int:
        token = self.take()
        if token[:1] != mark:
            raise self.error(f"expected {what}, not {token or 'the end of the line'!r}")
        return int(token[1:])

    def value(self) -> Value:
        return self._marked("%", "a value")

    def buffer(self) -> BufferId:
        return self._marked("@", "a buffer")

    def natural(self) -> int:
        token = self.take()
        if not token.isdecimal():
            raise self.error(f"expected a number, not {token or 'the end of the line'!r}")
        return int(token)

    def one_of(self, words: tuple[str, ...], what: str) -> str:
        token = self.take()
        if token not in words:
            raise self.error(f"expected {what}, not {token or 'the end of the line'!r}")
        return token

    def values(self, opening: str, closing: str) -> tuple[Value, ...]:
        """Consume values between brackets."""
        self.expect(opening)
        values: list[Value] = []
        while not self.takes(closing):
            if values:
                self.expect(",")
            values.append(self.value())
        return tuple(values)

    def end(self) -> None:
        if self.next:
            raise self.error(f"expected the end of the line, not {self.next!r}")


def read_lines(text: str) -> list[Line]:
    lines = []
    for number, raw in enumerate(text.split("\n"), 1):
        tokens = []
        at, content = 0, raw.rstrip()
        while at < len(content):
            found = _TOKEN.match(content, at)
            if found is None:
                raise ParseError(f"line {number}: unknown character {content[at:].strip()[0]!r}")
            if found["token"] is not None:
                tokens.append(found["token"])
            at = found.end()
        if tokens:
            lines.append(Line(number, len(raw) - len(raw.lstrip(" ")), tokens))
    return lines
