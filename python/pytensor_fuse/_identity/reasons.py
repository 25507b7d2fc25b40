"""Reasons why an op, a type or a constant has no digest, as text."""

from __future__ import annotations

from typing import Any

from pytensor.graph.basic import Constant
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.type import Type

from pytensor_fuse._identity.encoding import Encoding, NotByValueError
from pytensor_fuse._identity.names import import_name
from pytensor_fuse._identity.terms import ENCODERS, constant_term, term
from pytensor_fuse._pytensor.graphs.comparison import COMPARED_BY_CALLING, also_compared, compared


def why_without_digest(value: Op | Type[Any] | Constant[Any]) -> str | None:
    """Return the reason why an op, a type or a constant has no digest; None if it has one."""
    if isinstance(value, Constant):
        if constant_term(value).digest is not None:
            return None
        return why_without_digest(value.type) or "its data can only be compared by identity"
    if term(value).digest is not None:
        return None
    names = compared(type(value))
    if import_name(type(value)) is None:
        return f"its class {type(value).__qualname__} cannot be imported under its name"
    if names is None:
        if type(value).__eq__ is object.__eq__:
            return "its class does not define equality, so that it is equal only to itself"
        return f"the comparison of {type(value).__qualname__} is unknown"
    for name in (*names, *also_compared(value), *COMPARED_BY_CALLING):
        part = getattr(value, name, None)
        encoding = Encoding(ENCODERS)
        try:
            encoding.encode(part)
        except NotByValueError:
            return f"its {name} has no value that could be encoded: {_short(part)}"
        if any(child.digest is None for child in encoding.children):
            return f"its {name} has no digest: {_why_part(part)}"
    return "it is equal only to itself"


def _why_part(part: object) -> str:
    why: str | None = None
    if isinstance(part, Op | Type):
        why = why_without_digest(part)
    elif isinstance(part, FunctionGraph | FrozenFunctionGraph):
        for node in part.toposort():
            why = why_without_digest(node.op)
            if why:
                part = node.op
                break
    return f"{_short(part)}: {why}" if why else _short(part)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:76]} ..."
