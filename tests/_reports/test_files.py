"""Files are written wholly or not at all, and stay what and whose they are."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pytensor_fuse._reports import files


def test_the_file_is_named_that_cannot_be_written() -> None:
    if not Path("/proc/self").is_dir():
        pytest.skip("needs a place where none may write")
    with pytest.raises(OSError, match=r"/proc/plan\.html"):
        files.write("/proc/plan.html", "new")


def test_what_no_encoding_has_is_spelled_out(tmp_path: Path) -> None:
    files.write(tmp_path / "page", "a\ud800b")
    assert (tmp_path / "page").read_text(encoding="utf-8") == "a\\ud800b"


def test_long_names(tmp_path: Path) -> None:
    path = tmp_path / ("a" * 250)
    files.write(path, "new")
    assert path.read_text(encoding="utf-8") == "new"


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    for name in ("old", "missing"):
        target, link = tmp_path / "pages" / name, tmp_path / name
        link.symlink_to(target)
        if name == "old":
            target.write_text("old", encoding="utf-8")
        files.write(link, "new")
        assert link.is_symlink()
        assert target.read_text(encoding="utf-8") == "new"
    assert {path.name for path in (tmp_path / "pages").iterdir()} == {"old", "missing"}
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="loop"):
        files.write(loop, "new")


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Open for reading too, or opening it for writing would wait.
    reader = os.open(pipe, os.O_RDWR)
    try:
        files.write(pipe, "new")
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_file_is_for_those_whom_the_umask_lets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0o027)
    # It holds for all threads: it is not to be changed, not even for a moment.
    umask = os.umask
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was changed"))
    try:
        files.write(tmp_path / "new", "new")
        (tmp_path / "old").write_text("old", encoding="utf-8")
        (tmp_path / "old").chmod(0o604)
        files.write(tmp_path / "old", "new")
    finally:
        umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"new": 0o640, "old": 0o604}
