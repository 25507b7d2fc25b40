"""`pytensor-fuse cache`: the graphs on disk, from the command line."""

import os

import pytest

from support.processes import run_process


def cache(folder, *arguments, check=True):
    env = {**os.environ, "PYTENSOR_FLAGS": f"base_compiledir={folder}"}
    return run_process("-m", "pytensor_fuse", "cache", *arguments, env=env, check=check)


def test_help(tmp_path):
    text = cache(tmp_path, "--help").stdout
    assert text.startswith("usage: pytensor-fuse cache ")
    assert all(word in text for word in ("info", "clear", "path"))


@pytest.mark.parametrize("arguments", [["no_such_command"], ["info", "more"]])
def test_a_wrong_command_is_named(tmp_path, arguments):
    done = cache(tmp_path, *arguments, check=False)
    assert done.returncode == 2
    assert arguments[-1] in done.stderr
    assert "usage: pytensor-fuse cache " in done.stderr


def test_info_is_the_default(tmp_path):
    assert cache(tmp_path).stdout == cache(tmp_path, "info").stdout


def test_path_is_below_the_compile_directory(tmp_path):
    path = cache(tmp_path, "path").stdout
    assert path.startswith(str(tmp_path))
    assert path.endswith(".sqlite\n")


def test_a_cleared_cache_is_empty(tmp_path):
    cache(tmp_path, "clear")
    assert cache(tmp_path, "info").stdout.startswith("0 graphs, ")
