"""What all public names have in common: forms, documentation, and that all can be imported."""

from __future__ import annotations

import ast
import enum
import inspect
import os
import re
import textwrap
import typing

import pytest

import pytensor_fuse
from pytensor_fuse.reports import Audit, Explanation, FusionPlan, NativeReport, Trace
from support.public import MODULES, fields_of, functions_of, is_ours, public_names, reached

REPORTS = [Audit, Explanation, FusionPlan, NativeReport, Trace]


def test_the_names_at_the_top_are_few() -> None:
    functions = {name for name in pytensor_fuse.__all__ if callable(getattr(pytensor_fuse, name))}
    assert functions == {
        *("audit", "disable", "enable", "enabled", "explain", "freeze", "info", "plan_fusion"),
        *("status", "trace", "load_ipython_extension", "unload_ipython_extension"),
    }


def test_one_argument_has_one_name() -> None:
    for function in (pytensor_fuse.audit, pytensor_fuse.explain, pytensor_fuse.plan_fusion):
        assert next(iter(inspect.signature(function).parameters)) == "graph"


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.__name__)
def test_reports_are_asked_in_one_way(report: type) -> None:
    own = {name for base in report.__mro__ if is_ours(base) for name in vars(base)}
    assert {"to_dict", "to_html", "_repr_html_", "__str__", "__repr__"} <= own


@pytest.mark.parametrize(
    "method",
    dict.fromkeys(
        getattr(r, n) for r in REPORTS for n in dir(r) if n.startswith("to_") and n != "to_dict"
    ),
    ids=lambda method: method.__qualname__,
)
def test_files_are_written_or_their_text_returned(method: object) -> None:
    """The same overloads everywhere: a text without a path, None with one."""
    names = {**vars(pytensor_fuse), "os": os}
    forms = [typing.get_type_hints(form, names) for form in typing.get_overloads(method)]
    assert forms == [
        {"path": type(None), "return": str},
        {"path": str | os.PathLike[str], "return": type(None)},
    ]


NAMES = public_names()
FUNCTIONS = {
    name: function
    for public, value in NAMES.items()
    for name, function in functions_of(public, value)
}


def test_all_that_is_returned_has_a_public_name() -> None:
    public = [value for value in NAMES.values() if inspect.isclass(value)]
    found = reached()
    assert len(found) > 40
    assert {cls.__name__: by for cls, by in found.items() if cls not in public} == {}


def test_all_names_are_there() -> None:
    for module in (*MODULES, pytensor_fuse.native):
        assert sorted(module.__all__) == list(module.__all__)
        assert set(module.__all__) <= set(dir(module))
        assert inspect.getdoc(module)


@pytest.mark.parametrize("name", [name for name, value in NAMES.items() if inspect.isclass(value)])
def test_classes_tell_of_their_fields(name: str) -> None:
    """Each field of a record stands in the docstring of the class that has it."""
    cls = NAMES[name]
    assert inspect.getdoc(cls)
    for base, field, _ in fields_of(cls):
        own = inspect.getdoc(base) or ""
        told = own.partition("Attributes\n----------\n")[2]
        names = re.findall(r"^([\w, ]+)$", told, re.MULTILINE)
        assert field in ", ".join(names).split(", "), f"{name}.{field}"
    if issubclass(cls, enum.Enum):
        assert all(isinstance(member.value, str) and member.value for member in cls)


def sections_of(function: object) -> dict[str, str]:
    """The sections of a docstring in numpydoc's form, the summary under no name."""
    parts = re.split(r"^(\w[\w ]*)\n-+$", inspect.getdoc(function) or "", flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def raised_by(function: object) -> set[str]:
    """The errors that the code of a function raises itself, by name."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return {
        node.exc.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_documented_as_numpydoc_asks(name: str) -> None:
    function = FUNCTIONS[name]
    sections = sections_of(function)
    assert sections[""].strip(), "a summary"
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters
        if parameter not in ("self", "cls")
    ]
    entries = re.findall(
        r"^(\w[^:\n]*?)(?: : (.+))?$", sections.get("Parameters", ""), re.MULTILINE
    )
    documented = [each for names, _ in entries for each in names.split(", ")]
    assert documented == parameters
    assert [names for names, type_ in entries if not type_] == [], "the type of each"
    returns = function.__annotations__.get("return")
    is_function = inspect.isfunction(NAMES.get(name))
    if returns not in (None, "None") and (parameters or is_function):
        assert {"Returns", "Yields"} & set(sections)
    for error in raised_by(function):
        assert error in sections.get("Raises", ""), error


def methods_of_the_extension() -> dict[str, object]:
    return {
        f"{name}.{attribute}": method
        for name, cls in NAMES.items()
        if inspect.isclass(cls) and cls.__module__ == "pytensor_fuse._core"
        for attribute, method in vars(cls).items()
        if not attribute.startswith("_") and inspect.ismethoddescriptor(method)
    }


@pytest.mark.parametrize("name", methods_of_the_extension())
def test_methods_of_the_extension_are_documented_likewise(name: str) -> None:
    method = methods_of_the_extension()[name]
    sections = sections_of(method)
    assert sections[""].strip()
    parameters = [each for each in inspect.signature(method).parameters if each != "self"]
    text = sections.get("Parameters", "")
    entries = re.findall(r"^(\w[^:\n]*?)(?: : (.+))?$", text, re.MULTILINE)
    assert [each for names, _ in entries for each in names.split(", ")] == parameters
    assert [names for names, type_ in entries if not type_] == []


def test_there_are_functions_to_look_at() -> None:
    assert {
        "pytensor_fuse.audit",
        "pytensor_fuse.reports.Trace.diff",
        "pytensor_fuse.freeze",
    } <= set(FUNCTIONS)
    assert "pytensor_fuse.graph.Graph.toposort" in methods_of_the_extension()
    assert all(is_ours(function) for function in FUNCTIONS.values())
