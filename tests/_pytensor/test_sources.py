"""Functions that are written otherwise than those that were read are told from these."""

from __future__ import annotations

import ast
import importlib
import py_compile
import sys
from importlib.util import decode_source, find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pytensor_fuse
from pytensor_fuse._pytensor.compat import sources
from pytensor_fuse._pytensor.compat.checks import Does, DoesIfThere, Says, is_known, mismatches
from pytensor_fuse._pytensor.compat.known_files import FILES, PARTLY_KNOWN
from pytensor_fuse._pytensor.compat.known_sources import SOURCES
from pytensor_fuse._pytensor.compat.normal_form import digest, digest_of
from pytensor_fuse._pytensor.compat.sources import function_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAME = "a_module_of_facts"
TEXT = """
import functools

class Owner:
    @functools.cached_property
    def other(self):
        return 1

    def method(self, x):
        # A comment.
        return x.n < 1 and x.m + len("text")

    @property
    def value(self):
        return [self][0]

def replacement(self, x):
    return x.n < 1 and x.m + len("text")
"""
PATHS = ("Owner", "Owner.method", "Owner.value", "")
FACTS = {
    "Owner": Says(f"{NAME}:Owner"),
    "Owner.method": Does(f"{NAME}:Owner.method"),
    "Owner.value": Does(f"{NAME}:Owner.value.fget"),
    "": Says(NAME),
}


def defined(text: str, path: str) -> Any:
    found: Any = ast.parse(text)
    for name in path.split(".") if path else ():
        (found,) = [one for one in found.body if getattr(one, "name", None) == name]
    return found


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Import a module with a text; what is known are the functions of `TEXT`."""
    known = {path: f"000000000000 {digest(defined(TEXT, path))}" for path in PATHS}
    monkeypatch.setitem(SOURCES, NAME, known)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def imported(text: str) -> Any:
        (tmp_path / f"{NAME}.py").write_text(text)
        importlib.invalidate_caches()
        sys.modules.pop(NAME, None)
        return importlib.import_module(NAME)

    yield imported
    sys.modules.pop(NAME, None)
    sources._files.pop(NAME, None)


def unknown() -> set[str]:
    return {path for path, fact in FACTS.items() if fact.mismatch() is not None}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# A comment.", "# Another one."),
        ('"text"', "'text'"),
        ("x.m + len(", "x.m  +  len  ("),
        ("def method(self, x):", 'def method(self, x: int) -> "Any":\n        """Said."""'),
        ("import functools", "import functools\n\n\n\n"),
        ("        return [self][0]", "        pass\n        return ([self][0])"),
    ],
)
def test_what_is_laid_out_otherwise_is_known(module: Any, old: str, new: str) -> None:
    assert old in TEXT
    module(TEXT.replace(old, new))
    assert unknown() == set()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x.n < 1 and x.m", "x.n >= 99 or not x.m"),
        ("<", "<="),
        ("and", "or"),
        ("1 and", "2 and"),
        ("x.m +", "x.m -"),
        ('"text"', '"texts"'),
        ("len", "hash"),
        ("self, x)", "self, x, y=None)"),
        ("return x.n", "x.n = 1; return x.n"),
    ],
)
def test_other_operators_literals_and_names_are_seen(module: Any, old: str, new: str) -> None:
    before, after = TEXT.split("def replacement")
    assert old in before
    module(f"{before.replace(old, new)}def replacement{after}")
    assert unknown() == {"Owner.method", "Owner", ""}
    said = FACTS["Owner.method"].mismatch()
    found = digest(defined((before.replace(old, new)), "Owner.method"))
    assert said == f"{NAME}:Owner.method is another ({found})"


def test_the_getter_of_a_property(module: Any) -> None:
    module(TEXT.replace("[self][0]", "[self][-1]"))
    assert unknown() == {"Owner.value", "Owner", ""}


def test_a_function_of_somebody_elses(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its source is equal, but what it is called by, and what its names mean, is another matter.
    loaded = module(TEXT)
    monkeypatch.setattr(loaded.Owner, "method", loaded.replacement)
    said = FACTS["Owner.method"].mismatch()
    assert said == f"{NAME}:Owner.method is another (replacement of {loaded.__file__})"

    def method(self: Any, x: Any) -> Any:
        return x.n < 1 and x.m + len("text")

    method.__qualname__, method.__module__ = "Owner.method", NAME
    monkeypatch.setattr(loaded.Owner, "method", method)
    assert f"of {__file__})" in str(FACTS["Owner.method"].mismatch())


def test_a_class_of_somebody_elses(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = module(TEXT)
    monkeypatch.setattr(loaded, "Owner", type("Owner", (), {}))
    assert "is another (Owner of " in str(FACTS["Owner"].mismatch())
    # The text does not tell which of the two it is.
    module(TEXT + "\nclass Owner:\n    method = value = None\n")
    assert "not the only one" in str(FACTS["Owner"].mismatch())


def test_a_decorator_that_puts_something_else_there(module: Any) -> None:
    module(TEXT.replace("    def method", "    @functools.cache\n    def method"))
    (said,) = mismatches([FACTS["Owner.method"]])
    assert "is no Python function" in said
    module(TEXT.replace("    def method", "    @staticmethod\n    def method"))
    assert "Owner.method" in unknown()


def test_a_file_that_is_another_by_now(module: Any) -> None:
    loaded = module(TEXT)
    with open(loaded.__file__, "w") as file:
        file.write("\n\n" + TEXT)
    assert "no longer what" in str(FACTS["Owner.method"].mismatch())


@pytest.mark.parametrize("content", [b"\xff", b"# coding: none\n", b"def \x00\n" * 99])
def test_a_file_that_cannot_be_read_by_now(module: Any, content: bytes) -> None:
    loaded = module(TEXT)
    Path(loaded.__file__).write_bytes(content)
    for name in FACTS:
        assert mismatches([FACTS[name]])
    assert not is_known(loaded.Owner.method, NAME, "Owner.method")


def test_a_module_that_is_loaded_again(module: Any) -> None:
    module(TEXT)
    assert unknown() == set()
    module(TEXT.replace("<", ">"))
    assert "Owner.method" in unknown()


def test_a_function_that_is_not_there(module: Any) -> None:
    module(TEXT.replace("def method", "def renamed"))
    assert mismatches([FACTS["Owner.method"]]) == [f"{NAME}:Owner.method is not there"]
    assert mismatches([DoesIfThere(f"{NAME}:Owner.method")]) == []
    module(TEXT.replace("<", ">"))
    assert len(mismatches([DoesIfThere(f"{NAME}:Owner.method")])) == 1


def test_a_module_without_source(module: Any, tmp_path: Path) -> None:
    loaded = module(TEXT)
    py_compile.compile(loaded.__file__, str(tmp_path / f"{NAME}.pyc"))
    (tmp_path / f"{NAME}.py").unlink()
    sys.modules.pop(NAME)
    importlib.invalidate_caches()
    importlib.import_module(NAME)
    # What stands on all of them has one reason, as what stands on one of them.
    (said,) = mismatches(FACTS.values())
    assert said.startswith(f"{NAME} is installed without its sources")
    for fact in FACTS.values():
        assert mismatches([fact]) == [said]


def test_says_imports_nothing(module: Any) -> None:
    module(TEXT)
    del sys.modules[NAME]
    assert FACTS[""].mismatch() is None
    assert NAME not in sys.modules


# Files --------------------------------------------------------------------------------------


def test_in_a_known_file_nothing_is_parsed(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise AssertionError

    text = TEXT.replace("[self][0]", "[self][-1]")
    monkeypatch.setattr(sources, "_parsed", fail)
    monkeypatch.setitem(FILES, NAME, f"000000000000 {digest_of(TEXT.encode())}")
    monkeypatch.setitem(PARTLY_KNOWN, NAME, {digest_of(text.encode()): "Owner.value"})
    module(TEXT)
    assert unknown() == set()
    module(text)
    assert FACTS["Owner.method"].mismatch() is None
    assert (
        FACTS["Owner.value"].mismatch()
        == f"{NAME}:Owner.value.fget is another version (also known)"
    )
    # A byte more, and functions are parsed.
    module(f"{TEXT}\n")
    with pytest.raises(AssertionError):
        FACTS["Owner.method"].mismatch()


def test_functions_of_others_are_seen_in_known_files(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = module(TEXT)
    monkeypatch.setitem(FILES, NAME, digest_of(TEXT.encode()))
    monkeypatch.setattr(loaded.Owner, "method", loaded.replacement)
    assert unknown() == {"Owner.method"}


def facts_of_installed() -> Iterator[Does | Says]:
    for module, paths in SOURCES.items():
        if module.split(".")[0] != "pytensor" or find_spec(module.rpartition(".")[0]) is None:
            continue
        loaded = importlib.import_module(module) if find_spec(module) is not None else None
        for path in paths:
            if loaded is None or (path and path.split(".")[0] not in vars(loaded)):
                continue
            found = getattr(loaded, path.split(".")[0]) if path else None
            for name in path.split(".")[1:]:
                found = getattr(found, name, None)
            if isinstance(found, type) or not path:
                yield Says(f"{module}:{path}".removesuffix(":"))
            else:
                # A rewriter and a property have their functions in an attribute.
                where = next((f".{name}" for name in ("fn", "fget") if hasattr(found, name)), "")
                yield Does(f"{module}:{path}{where}")


def test_files_are_known_by_what_is_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytensor_fuse.enabled(False):
        facts = list(facts_of_installed())
        quick = [mismatches([fact]) == [] for fact in facts]
        monkeypatch.setattr(sources, "FILES", {})
        monkeypatch.setattr(sources, "PARTLY_KNOWN", {})
        parsed = [mismatches([fact]) == [] for fact in facts]
    assert len(facts) > 200
    assert quick == parsed
    assert quick.count(True) > 200


# Functions in files -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "module",
    ["pytensor.link.c.basic", "pytensor.graph.rewriting.basic", "pytensor.tensor.elemwise"],
)
def test_each_function_is_found_by_its_line(module: str) -> None:
    spec: Any = find_spec(module)
    text = decode_source(spec.loader.get_data(spec.origin))
    lines = text.split("\n")
    functions = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.FunctionDef)]
    assert len(functions) > 50
    for function in functions:
        first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
        found = function_at(lines, first)
        assert found is not None
        assert digest(found) == digest(function)


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    return 1",
        "def f(): return 1",
        "def f(\n    a,\n    b,\n):\n    return a",
        "def f(\na\n):\n    return a",
        "@by(\n    1,\n)\n@by\ndef f():\n    return 1",
        "@by('''\ndef f(): no\n''')\ndef f():\n    return 1",
        "def f():\n    a = '''\nno\n'''\n    return a",
        "def f():\n    return [\n1,\n2\n]",
        "def f():\n    a = 1 + \\\n2\n    return a",
        "def f():\n# said\n    return 1",
        "def f():\n\n\n    return 1\n\n    # said",
        "def f():\n\tif a:\n\t\treturn 1",
        "def f():\n    def g():\n        return 1\n    return g",
        "def f():\n    '''\nsaid\n'''\n    return 1",
    ],
)
@pytest.mark.parametrize("after", ["", "\n", "\n\nother = 1\n", "\n# said\ndef g(): return 2\n"])
@pytest.mark.parametrize("indentation", ["", "    ", "\t"])
def test_where_a_function_ends(text: str, after: str, indentation: str) -> None:
    expected = digest(ast.parse(text).body[0])
    if indentation:
        # Within a text, lines stay where they are: so do all that stand at the left.
        lines = text.split("\n")
        moved = [
            indentation + line if line[:1] in ("d", "@", " ", "\t", ")") else line for line in lines
        ]
        text = "class A:\n" + "\n".join(moved)
        try:
            tree: Any = ast.parse(text)
        except SyntaxError:
            pytest.skip("it cannot be moved")
        expected = digest(tree.body[0].body[0])
    before = "class B: pass\n"
    lines = f"{before}{text}{after}".split("\n")
    found = function_at(lines, 3 if indentation else 2)
    assert found is not None
    assert digest(found) == expected


@pytest.mark.parametrize("first", [0, 1, 3, 4])
def test_where_there_is_no_function(first: int) -> None:
    assert function_at(["a = 1", "def f():", "    return 1"], first) is None
