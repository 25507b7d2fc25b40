"""The version is written once, in Cargo.toml."""

import tomllib
from importlib.metadata import version
from pathlib import Path

import pytensor_fuse
from pytensor_fuse import _core


def test_version_is_that_of_the_workspace():
    manifest = tomllib.loads((Path(__file__).parents[1] / "Cargo.toml").read_text())
    expected = manifest["workspace"]["package"]["version"]
    assert _core.__version__ == expected
    assert pytensor_fuse.__version__ == expected
    assert version("pytensor-fuse") == expected
