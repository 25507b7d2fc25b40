"""What all public names have in common: forms, documentation, and that all can be imported."""

from __future__ import annotations

import os
import typing

import pytest

import pytensor_fuse
from pytensor_fuse import Audit, FusionPlan, Trace

REPORTS = [Audit, FusionPlan, Trace]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.__name__)
def test_reports_are_asked_in_one_way(report: type) -> None:
    assert {"to_dict", "to_html", "_repr_html_", "__str__", "__repr__"} <= set(vars(report))


@pytest.mark.parametrize(
    "method",
    [getattr(r, n) for r in REPORTS for n in vars(r) if n.startswith("to_") and n != "to_dict"],
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
