"""Which line of the user's program made a variable, or asked for a function."""

from __future__ import annotations

import functools
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

import pytensor_fuse
from pytensor_fuse import trace as trace_rewrites
from pytensor_fuse._pytensor.graphs.provenance import (
    SourceLine,
    calling_line,
    is_library,
    line_that_made,
)

INSTALLED = f"{sysconfig.get_path('purelib')}/package/module.py"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (functools.__file__, True),
        (pytensor.__file__, True),
        (pytensor_fuse.__file__, True),
        (str(Path(pytensor_fuse.__file__).parent / "_trace" / "trace.py"), True),
        (INSTALLED, True),
        ("/usr/lib/python3/dist-packages/numpy/core.py", True),
        ("C:\\venv\\Lib\\site-packages\\pymc\\model.py", True),
        ("<frozen runpy>", True),
        (__file__, False),
        ("<stdin>", False),
        ("<ipython-input-7>", False),
        ("/tmp/ipykernel_3/12.py", False),
        ("/home/me/my-site-packages/model.py", False),
        (f"{Path(pytensor_fuse.__file__).parent}_model/model.py", False),
    ],
)
def test_library_code(file: str, expected: bool) -> None:
    assert is_library(file) is expected


def caller_in(file: str) -> Any:
    """Return a function that calls another, from line 2 of a file of that name."""
    names: dict[str, Any] = {}
    text = "def call(function, *args):\n    return function(*args)\n"
    exec(compile(text, file, "exec"), names)
    return names["call"]


def test_the_calling_line_is_the_users() -> None:
    line = calling_line()
    assert line is not None
    assert line.file == __file__
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert text[line.line - 1] == "    line = calling_line()"
    user, library = caller_in("model.py"), caller_in(INSTALLED)
    assert user(calling_line) == SourceLine("model.py", 2)
    assert user(library, calling_line) == SourceLine("model.py", 2)
    assert user(library, user, library, calling_line) == SourceLine("model.py", 2)


def test_where_only_libraries_run() -> None:
    installed, stock = caller_in(INSTALLED), caller_in(pytensor.__file__)
    # Below what a worker runs there is nothing but the standard library.
    with ThreadPoolExecutor(1) as pool:
        line = pool.submit(installed, stock, calling_line).result()
        assert line == SourceLine(INSTALLED, 2)
        line = pool.submit(stock, calling_line).result()
        assert line is not None
        assert Path(line.file).parts[-2:] == ("futures", "thread.py")


def test_a_trace_and_a_picture_name_the_same_line() -> None:
    x = pt.vector("x")
    library = caller_in(INSTALLED)
    # A compile sets the limit to none, and one in another thread may have left it there.
    with pytensor.config.change_flags(traceback__limit=8):
        line, y = library(calling_line), library(pt.exp, x)
    made = line_that_made([y])
    assert line is not None
    assert made is not None
    assert (made.file, made.line) == (line.file, line.line) == (__file__, line.line)
    with trace_rewrites() as trace:
        where = library(calling_line), library(pytensor.function, [x], y, Mode("py", None))
    assert trace.calls[0].where == f"{__file__}:{where[0].line}"
