"""The tests lie as the package does, and each of their modules is loaded once."""

import ast
import sys
import tomllib
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import pytest

import pytensor_fuse
from support import selection
from support.graphs import assert_same_results

TESTS = Path(__file__).parent
# The tests of one accelerator each have a folder of their own, beside those of all.
OWN = (TESTS / "support", TESTS / "_accelerators" / "each")
FOLDERS = sorted(
    path.parent.relative_to(TESTS)
    for path in TESTS.rglob("__init__.py")
    if not any(path.parent.is_relative_to(folder) for folder in OWN)
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


@pytest.mark.parametrize("place", selection.SLOW)
def test_slow_tests_are_there(place):
    assert (TESTS / place).exists()


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


def _named_modules():
    """Yield each module of the package and the modules that it names in a text, to import them."""
    package = Path(pytensor_fuse.__file__).parent
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        for node in ast.walk(ast.parse(path.read_text())):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and text.startswith("pytensor_fuse.") and " " not in text:
                yield ".".join(parts), text.removesuffix(".")


def test_modules_that_are_named_in_texts_are_not_above():
    """The contract of imports sees no module whose name is a text."""
    file = TESTS.parent / "pyproject.toml"
    contracts = tomllib.loads(file.read_text())["tool"]["importlinter"]["contracts"]
    layers = {one["containers"][0]: one["layers"] for one in contracts if one["type"] == "layers"}
    heights = {
        f"{container}.{name}": -place
        for container, listed in layers.items()
        for place, layer in enumerate(listed)
        for name in layer.split(" | ")
    }

    def is_above(other, one):
        for container in layers:
            n_parts = container.count(".") + 2
            ends = [".".join(name.split(".")[:n_parts]) for name in (one, other)]
            if any(end.rpartition(".")[0] != container or end not in heights for end in ends):
                continue
            if heights[ends[0]] < heights[ends[1]]:
                return True
        return False

    named = list(_named_modules())
    assert ("pytensor_fuse._linalg.ops.__init__", "pytensor_fuse._linalg.ops.numba") in named
    assert not [(one, other) for one, other in named if is_above(other, one)]
