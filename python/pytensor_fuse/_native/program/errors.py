"""What is wrong with a program, or with its text."""

from __future__ import annotations


class ProgramError(ValueError):
    """A program breaks a rule; the message names the value or buffer, and the rule."""


class ParseError(ValueError):
    """A text is not that of a program; the message names the line."""
