"""The tutorial's examples and commands run, and print what it says that they print."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from test_readme import EXAMPLE, SEPARATOR

TUTORIAL = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("tutorial")
    examples = [code for code, _ in EXAMPLE.findall(TUTORIAL)]
    (path / "tutorial.py").write_text(
        "".join(f"{code}\nprint({SEPARATOR!r})\n" for code in examples)
    )
    return path


def run(place, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        capture_output=True,
        text=True,
        cwd=place,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_examples_run_and_print_what_is_shown(place):
    outputs = run(place, "tutorial.py").split(f"{SEPARATOR}\n")
    examples = EXAMPLE.findall(TUTORIAL)
    assert len(outputs) == len(examples) + 1
    for (code, expected), output in zip(examples, outputs, strict=False):
        assert output.rstrip() == expected.rstrip(), code
    for page in ("slow.html", "plan.html", "trace.html"):
        assert "<html" in (place / page).read_text(encoding="utf-8")


COMMANDS = re.findall(r"^python (-m pytensor_fuse .*)$", TUTORIAL, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command, place):
    output = run(place, *shlex.split(command))
    assert output or "--html" in command


def test_there_are_commands():
    assert len(COMMANDS) == 3


def test_links_within_the_page_lead_somewhere():
    headings = re.findall(r"^#+ (.*)$", TUTORIAL, re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-") for each in headings}
    links = re.findall(r"\]\(#(.*?)\)", TUTORIAL)
    assert links
    assert set(links) <= anchors
