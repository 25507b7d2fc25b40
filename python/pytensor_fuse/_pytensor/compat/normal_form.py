"""The normal form of Python source code, and its digest.

Two sources have the same form if they are the same program. The form omits comments, layout,
parentheses, the spelling of literals, docstrings, statements without effect, type parameters, and
annotations of parameters, results and local variables; it contains every name, operator, literal
and decorator. The form is the same in all supported versions of Python, while the text that
`ast.dump` and `ast.unparse` write depends on the version.
"""

from __future__ import annotations

import ast
from hashlib import blake2b
from itertools import groupby
from typing import Any, Final

# These fields follow from others, or mean nothing to the interpreter.
_LEFT_OUT: Final = frozenset({"ctx", "kind", "type_comment", "type_params", "returns"})


def digest(node: ast.AST) -> str:
    """Return the digest of the normal form of a parsed function or module."""
    return digest_of(normal_form(node).encode())


def digest_of(data: bytes) -> str:
    """Return a digest of 48 bits, in hexadecimal digits."""
    return blake2b(data, digest_size=6).hexdigest()


def normal_form(node: ast.AST) -> str:
    """Return the normal form of a parsed function or module.

    Notes
    -----
    O(size of the tree); the recursion is as deep as the tree.
    """
    parts: list[str] = []
    _write(node, parts, is_in_class=False)
    return "".join(parts)


def _write(value: Any, parts: list[str], *, is_in_class: bool) -> None:
    if isinstance(value, list):
        parts.append("[")
        for one in value:
            _write(one, parts, is_in_class=is_in_class)
            parts.append(",")
        parts.append("]")
    elif isinstance(value, ast.Constant):
        # The output of `ascii` does not depend on the version of Unicode.
        parts.append(f"={value.value!a}")
    elif isinstance(value, ast.AST):
        _write_node(value, parts, is_in_class=is_in_class)
    else:
        parts.append(f"{value!a}")


def _write_node(node: ast.AST, parts: list[str], *, is_in_class: bool) -> None:
    kind, left_out = type(node).__name__, _LEFT_OUT
    if isinstance(node, ast.arg):
        left_out |= {"annotation"}
    elif isinstance(node, ast.AnnAssign) and not is_in_class:
        # The annotations of a class may define its fields.
        left_out |= {"annotation", "simple"}
    parts.append(f"{kind}(")
    for name in node._fields:
        field = getattr(node, name, None)
        if name in left_out:
            continue
        if isinstance(node, ast.JoinedStr):
            field = _pieces(field)
        elif isinstance(field, list):
            field = [one for one in field if not _has_no_effect(one)]
        # Newer versions of Python have more fields, which are empty in code that older versions can
        # parse.
        if field is None or field == []:
            continue
        parts.append(f"{name}:")
        _write(field, parts, is_in_class=isinstance(node, ast.ClassDef))
        parts.append(";")
    parts.append(")")


def _has_no_effect(value: Any) -> bool:
    """Whether a statement is a docstring, a bare string, or ``pass``."""
    return isinstance(value, ast.Pass) or (
        isinstance(value, ast.Expr) and isinstance(value.value, ast.Constant)
    )


def _pieces(values: Any) -> list[Any]:
    """Return the pieces of an f-string, with adjacent texts joined."""
    found: list[Any] = []
    for is_text, group in groupby(values, lambda one: isinstance(one, ast.Constant)):
        if is_text:
            text = "".join(one.value for one in group)
            found += [ast.Constant(text)] if text else []
        else:
            found += group
    return found
