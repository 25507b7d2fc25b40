"""The script that runs PyTensor's tests tells failures of ours from those that were there."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "scripts" / "upstream"
COMPARE = FOLDER / "compare.py"

CONFTEST = """
    import sys
    IS_OURS = "pytensor_fuse" in sys.modules
"""

TESTS = """
    import os
    import pytest
    from conftest import IS_OURS

    def test_passes():
        import pytensor
        assert "source" not in pytensor.__file__

    def test_fails_by_itself():
        assert False

    def test_is_ours():
        assert not IS_OURS, "the culprit"

    @pytest.mark.parametrize("name", ["a b", "[c]"])
    def test_of_numba(name):
        assert "PYTENSOR_FUSE_NATIVE" not in os.environ

    @pytest.mark.xfail(strict=True)
    def test_expected():
        assert False

    @pytest.fixture
    def broken():
        yield
        assert not IS_OURS, "at the end"

    def test_of_what_comes_after(broken):
        pass
"""


def compared(source, *arguments):
    return subprocess.run(
        [sys.executable, COMPARE, source, *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "checkout"
    (folder / "tests").mkdir(parents=True)
    # Nobody imports the package of the source.
    (folder / "pytensor").mkdir()
    (folder / "pytensor" / "__init__.py").write_text("raise ImportError")
    (folder / "conftest.py").write_text(textwrap.dedent(CONFTEST))
    (folder / "tests" / "test_some.py").write_text(textwrap.dedent(TESTS))
    return folder


def test_new_failures_are_told(source):
    ran = compared(source, "tests")
    assert ran.returncode == 1, ran.stderr
    told = [line.strip() for line in ran.stdout.splitlines() if line.startswith("  NEW")]
    everything_on, machine_code_off = told[:2], told[2:]
    for first, second in (everything_on, machine_code_off[::3]):
        assert first.startswith(
            "NEW  tests/test_some.py::test_is_ours: AssertionError: the culprit"
        )
        assert second.startswith("NEW  tests/test_some.py::test_of_what_comes_after: ")
    for name, line in zip(("a b", "[c]"), machine_code_off[1:3], strict=True):
        assert f"::test_of_numba[{name}]: " in line
    assert ran.stdout.splitlines()[-1] == "6 new failures"


@pytest.mark.parametrize("arguments", [(), ("-n", "2")])
def test_what_cannot_be_collected_is_told(source, arguments):
    (source / "tests" / "test_some.py").write_text("def test_passes(): pass")
    for name, condition in {"ours": "IS_OURS", "both": "True"}.items():
        (source / "tests" / f"test_{name}.py").write_text(
            f"from conftest import IS_OURS\nif {condition}: raise ValueError('the culprit')\n"
            "def test_more(): pass"
        )
    ran = compared(source, "tests", *arguments)
    assert ran.returncode == 1, ran.stderr
    told = [line.strip() for line in ran.stdout.splitlines() if line.startswith("  NEW")]
    assert len(told) == 2
    for line in told:
        assert line.startswith("NEW  collecting tests/test_ours.py: ")
        assert "the culprit" in line


def test_a_source_in_which_nothing_passes_tells_nothing(source):
    (source / "tests" / "test_some.py").write_text("import what_is_not_there")
    assert compared(source, "tests").returncode == 2


def test_a_process_that_dies_is_no_success(source):
    (source / "tests" / "test_some.py").write_text(
        "import os\ndef test_first(): pass\ndef test_dies(): os._exit(139)"
    )
    ran = compared(source, "tests")
    assert ran.returncode == 1
    assert "the last test that it had run was tests/test_some.py::test_first" in ran.stderr


def test_without_a_source_it_says_what_it_wants(tmp_path):
    ran = compared(tmp_path)
    assert ran.returncode == 1
    assert ran.stderr.startswith("usage")


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "compare", raising=False)
    import compare

    yield compare
    sys.modules.pop("compare", None)


def test_known_failures_say_what_and_why(script):
    for known in script.known_failures(script.KNOWN.read_text()):
        assert known.pattern.startswith("tests/")
    (known,) = script.known_failures("# words\n\ntests/a.py::*  ~ 2 nodes  # it counts them\n")
    assert known == ("tests/a.py::*", "2 nodes", "it counts them")
    for line in ("tests/a.py::b", "tests/a.py::b  # why", "tests/a.py::b  ~ what"):
        with pytest.raises(ValueError, match="is not of the form"):
            script.known_failures(line)


def test_known_failures_are_not_new(script, capsys):
    failed, passed = script.Outcome(False, "there are 2 nodes"), script.Outcome(True, "")
    ours = {"t::a": failed, "t::b[1]": failed, "t::c": failed, "t::d": passed}
    stock = {"t::a": passed, "t::b[1]": passed, "t::c": failed}
    known = script.known_failures("t::b[[]*  ~ 2 nodes  # it counts them")
    assert script.report({"a way": ours}, stock, known) == 1
    told = capsys.readouterr().out
    assert "NEW  t::a: there are 2 nodes" in told
    assert "known  t::b[1]: it counts them" in told
    assert "t::c" not in told
    del ours["t::a"]
    assert script.report({"a way": ours}, stock, known) == 0
    # It fails in another way than is known.
    ours["t::b[1]"] = script.Outcome(False, "there are 3 nodes")
    assert script.report({"a way": ours}, stock, known) == 1
