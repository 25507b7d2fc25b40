"""The public interface of the package: names, and everything that their annotations refer to."""

from __future__ import annotations

import ast
import builtins
import enum
import functools
import inspect
import sys
import types
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytensor_fuse
import pytensor_fuse.cache
import pytensor_fuse.exceptions
import pytensor_fuse.graph
import pytensor_fuse.linalg
import pytensor_fuse.reports

MODULES = (
    pytensor_fuse,
    pytensor_fuse.reports,
    pytensor_fuse.exceptions,
    pytensor_fuse.cache,
    pytensor_fuse.linalg,
    pytensor_fuse.graph,
)


def public_names() -> dict[str, object]:
    """Return the public names that can be imported, each object under the first of its names."""
    found: dict[str, object] = {}
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, str | types.ModuleType) or value in found.values():
                continue
            found[f"{module.__name__}.{name}"] = value
    return found


def is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).partition(".")[0] == "pytensor_fuse"


def functions_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Return the functions that a user may call: a function itself, or the public ones of a class.

    Functions of the extension have no annotations; those in its stub are compared by mypy.
    """
    if inspect.isfunction(value):
        yield name, value
        return
    if not inspect.isclass(value):
        return
    for base in value.__mro__:
        if not is_ours(base):
            continue
        for attribute, member in vars(base).items():
            if attribute.startswith("_"):
                continue
            if isinstance(member, property | functools.cached_property):
                member = member.fget if isinstance(member, property) else member.func
            if isinstance(member, classmethod | staticmethod):
                member = member.__func__
            if inspect.isfunction(member):
                yield f"{name}.{attribute}", member


def fields_of(value: Any) -> list[tuple[type, str, str]]:
    """Return the annotations of the public fields of a class: their class, name and text."""
    if not inspect.isclass(value) or issubclass(value, enum.Enum):
        return []
    return [
        (base, name, annotation)
        for base in value.__mro__
        if is_ours(base)
        for name, annotation in vars(base).get("__annotations__", {}).items()
        if not name.startswith("_")
    ]


@functools.cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    """Return the names that a module imports from others, including those for type checkers."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def classes_in(module: str, annotation: Any) -> set[type]:
    """Return the classes of the package that an annotation names."""
    found: set[type] = set()
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    for node in ast.walk(ast.parse(text or "None", mode="eval")):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= classes_in(module, node.value)
        if not isinstance(node, ast.Name):
            continue
        value = vars(sys.modules[module]).get(node.id)
        if value is None and node.id in _imports(module):
            where, name = _imports(module)[node.id]
            value = getattr(import_module(where), name, None)
        if value is None and hasattr(builtins, node.id):
            continue
        if isinstance(value, type) and is_ours(value):
            found.add(value)
        elif isinstance(value, str | types.UnionType) or hasattr(value, "__args__"):
            found |= {each for each in getattr(value, "__args__", ()) if is_ours(each)}
    return found


def reached() -> dict[type, str]:
    """Return the classes that public names lead to, each with the name that reaches it."""
    found: dict[type, str] = {}
    pending = list(public_names().items())
    while pending:
        name, value = pending.pop(0)
        classes: dict[type, str] = {}
        for function_name, function in functions_of(name, value):
            for annotation in function.__annotations__.values():
                for each in classes_in(function.__module__, annotation):
                    classes[each] = function_name
        for base, field, annotation in fields_of(value):
            for each in classes_in(base.__module__, annotation):
                classes[each] = f"{name}.{field}"
        for each, by in classes.items():
            if each not in found:
                found[each] = by
                pending.append((f"{name} -> {each.__name__}", each))
    return found
