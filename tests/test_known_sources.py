"""The command that compares releases says what is new in them, and writes down their files."""

from __future__ import annotations

import ast
import sys
import zipfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

from pytensor_fuse._pytensor.compat.known_files import FILES, PARTLY_KNOWN
from pytensor_fuse._pytensor.compat.known_sources import SOURCES
from pytensor_fuse._pytensor.compat.normal_form import digest, digest_of

SCRIPT = Path(__file__).parents[1] / "scripts/known-sources"
OLD = '''
class A:
    def method(self, x):
        """Said."""
        return x < 1

@overload
def function(x): ...
def function(x):
    return x
'''
# Of one release, both are known; of the next, the first; of the last, none is there.
TEXTS = {"1.0": OLD, "1.1": OLD.replace("return x\n", "return -x\n"), "1.2": "# Another file.\n"}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setattr(sys, "path", list(sys.path))
    loader = SourceFileLoader("known_sources_script", str(SCRIPT))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module: Any = module_from_spec(spec)
    loader.exec_module(module)
    for name in ("known_sources", "normal_form"):
        del sys.modules[name]
    tree = ast.parse(OLD)
    known = {
        "A.method": digest(tree.body[0].body[0]),  # type: ignore[attr-defined]
        "function": digest(tree.body[2]),
    }
    monkeypatch.setattr(module, "SOURCES", {"package.one": known, "package": {"": digest(tree)}})
    monkeypatch.setattr(module, "RELEASES", {"package": " ".join(TEXTS)})
    monkeypatch.setattr(module, "FILES", tmp_path / "known_files.py")
    for version, text in TEXTS.items():
        root = tmp_path / f"package-{version}" / "package"
        root.mkdir(parents=True)
        (root / "one.py").write_text(text)
        (root / "__init__.py").write_text(OLD)
    return module


def run(script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["known-sources", "--cache", str(tmp_path), *words])
    script.main()


def test_what_is_new_is_shown(
    script: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(script, monkeypatch, tmp_path, "package==1.0", "package==1.2")
    assert capsys.readouterr().out == ""
    run(script, monkeypatch, tmp_path)
    found = digest(ast.parse("def function(x):\n    return -x\n").body[0])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == f"package 1.1: package.one:function is {found}"
    assert [line.strip() for line in lines] == [
        "@@ -1,2 +1,2 @@", "def function(x):", "-    return x", "+    return -x"
    ]  # fmt: skip


@pytest.mark.parametrize("word", ["package", "package==", "another==1.0", "package=1.0"])
def test_a_release_is_a_package_and_a_version(
    script: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    word: str,
) -> None:
    with pytest.raises(SystemExit):
        run(script, monkeypatch, tmp_path, word)
    assert f"{word!r} is no PACKAGE==VERSION; the packages are package" in capsys.readouterr().err


def test_a_release_of_which_half_was_unpacked_is_unpacked_anew(
    script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "package-2.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("package/__init__.py", OLD)
        wheel.writestr("package/one.py", OLD)
    monkeypatch.setattr(script.subprocess, "run", lambda command, check: None)
    extract = zipfile.ZipFile.extractall

    def interrupted(self: zipfile.ZipFile, path: Path, members: list[str]) -> None:
        extract(self, path, members[:1])
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(zipfile.ZipFile, "extractall", interrupted)
        with pytest.raises(KeyboardInterrupt):
            script.Release("package", "2.0", tmp_path)
    assert script.Release("package", "2.0", tmp_path).data("package.one") == OLD.encode()


def test_files_are_written_down(
    script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run(script, monkeypatch, tmp_path, "--write")
    scope: dict[str, Any] = {}
    exec((tmp_path / "known_files.py").read_text(), scope)
    old, new, gone = [digest_of(text.encode()) for text in TEXTS.values()]
    assert scope["FILES"] == {"package": old, "package.one": f"{old} {gone}"}
    assert scope["PARTLY_KNOWN"] == {"package.one": {new: "function"}}


def test_what_was_written_down_is_of_what_is_known() -> None:
    assert set(FILES) | set(PARTLY_KNOWN) == set(SOURCES)
    for module, files in PARTLY_KNOWN.items():
        assert not set(files) & set(FILES.get(module, "").split())
        for others in files.values():
            assert set(others.split()) <= set(SOURCES[module])
