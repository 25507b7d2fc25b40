"""A PyTensor of the future: the installed one, except for one private part or signature.

The sources of PyTensor are changed while they are imported, in this process alone. PyTensor itself
still works, like a release in which somebody has renamed an attribute or rewritten a function. A
module with a rewritten function is reformatted as a whole, which is no change.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import decode_source
from typing import Any

SUFFIX = "_of_the_future"


@dataclass(frozen=True)
class Change:
    """The difference of the future version.

    Attributes
    ----------
    place
        A function that has a further parameter, or does more; or None. With a name, the only module
        in which attributes of this name are renamed, since parameters may have it, too.
    name
        A renamed attribute; or None.
    takes_more
        Which of the two changes the function has.
    """

    place: str | None = None
    name: str | None = None
    takes_more: bool = False


def come(change: Change) -> None:
    """Change PyTensor when this process imports it, which it must not have done yet."""
    assert "pytensor" not in sys.modules
    sys.meta_path.insert(0, _Finder(change))


def changed(change: Change, module: str, source: str) -> str:
    """Return the source of a module of that future."""
    if change.name is not None:
        if change.place is not None and module != change.place.partition(":")[0]:
            return source
        # Private names of a class appear in its source without the name of the class.
        mangled = re.fullmatch(r"_[^\W_]+(__\w*[^\W_])", change.name)
        name = change.name if mangled is None else mangled[1]
        if name not in source:
            return source
        # Classes that compare their instances by an attribute have its name in a string.
        before = r"(?<!\w)" if change.place is None else r"(?<=[.\"'])"
        return re.sub(rf"{before}{re.escape(name)}(?!\w)", _renamed(name), source)
    assert change.place is not None
    where, _, path = change.place.partition(":")
    if module != where:
        return source
    tree = ast.parse(source)
    function = _function(tree, re.sub(r"\.(fn|fget|_defn)$", "", path).split("."))
    if change.takes_more:
        function.args.kwonlyargs.append(ast.arg("of_the_future"))
        function.args.kw_defaults.append(ast.Constant(None))
    else:
        # No name changes.
        function.body.insert(0, ast.parse("0 < 1").body[0])
    return ast.unparse(tree)


def _renamed(name: str) -> str:
    if name.startswith("__") and name.endswith("__"):
        return f"{name[:-2]}{SUFFIX}__"
    return f"{name}{SUFFIX}"


def _function(tree: ast.Module, path: list[str]) -> Any:
    body: list[ast.stmt] = tree.body
    for name in path:
        # The last overload is the function.
        *_, found = [
            node
            for node in body
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name
        ]
        body = found.body
    return found


class _Finder(MetaPathFinder):
    def __init__(self, change: Change) -> None:
        self._change = change

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname.split(".")[0] != "pytensor":
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path, self._change)
        return spec


class _Loader(SourceFileLoader):
    """Loads changed modules from their changed sources, and all others as usual."""

    def __init__(self, name: str, path: str, change: Change) -> None:
        super().__init__(name, path)
        self._change = change

    def get_data(self, path: str) -> bytes:
        data = super().get_data(path)
        if path != self.path:
            return data
        source = decode_source(data)
        new = changed(self._change, self.name, source)
        return data if new == source else new.encode()

    def get_code(self, fullname: str):
        data = self.get_data(self.path)
        if data == super().get_data(self.path):
            return super().get_code(fullname)
        return compile(decode_source(data), self.path, "exec", dont_inherit=True)
