"""The tests lie as the package does, and each of their modules is loaded once."""

import sys
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import pytest

import pytensor_fuse
from support.graphs import assert_same_results

TESTS = Path(__file__).parent
FOLDERS = sorted(
    path.parent.relative_to(TESTS)
    for path in TESTS.rglob("__init__.py")
    if path.parent != TESTS / "support"
)


def test_no_module_is_loaded_under_two_names():
    """Two copies of a module have two of each class, cache and fixture."""
    roots = (TESTS, Path(pytensor_fuse.__file__).parent)
    names = defaultdict(list)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and any(Path(file).is_relative_to(root) for root in roots):
            names[file].append(name)
    assert str(TESTS / "conftest.py") in names
    assert not {file: loaded for file, loaded in names.items() if len(loaded) > 1}


def test_shared_assertions_say_what_they_compared():
    with pytest.raises(AssertionError, match="assert 1 == 2"):
        assert_same_results([0.0], [0.0, 0.0])


def test_there_are_folders():
    assert Path("_audit/sections") in FOLDERS


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_each_folder_is_that_of_a_subpackage(folder):
    assert find_spec(".".join(("pytensor_fuse", *folder.parts)))


def test_each_folder_of_tests_is_a_package():
    """Two test files of one name could not both be loaded otherwise."""
    folders = {path.parent for path in TESTS.rglob("test_*.py")} - {TESTS}
    assert all((folder / "__init__.py").exists() for folder in folders)
