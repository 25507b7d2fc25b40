"""Exceptions for invalid programs and malformed program text."""

from __future__ import annotations


class ProgramError(ValueError):
    """A program breaks a rule; the message names the value or buffer, and the rule."""


class ParseError(ValueError):
    """A text does not describe a program; the message names the line."""
