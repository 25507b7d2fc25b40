"""The version is written in Cargo.toml; where it is written again, it is the same."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytensor_fuse
from pytensor_fuse import _core

ROOT = Path(__file__).parents[1]


def test_version_is_that_of_the_workspace():
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    expected = manifest["workspace"]["package"]["version"]
    assert _core.__version__ == expected
    assert pytensor_fuse.__version__ == expected
    assert version("pytensor-fuse") == expected


def test_what_is_cited_is_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [pytensor_fuse.__version__]


def test_reports_ask_for_the_state_of_things():
    templates = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("w*.yml"))
    assert len(templates) == 2
    for template in templates:
        assert "`python -m pytensor_fuse info`" in template.read_text(encoding="utf-8")
