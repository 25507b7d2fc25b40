"""The tutorial's examples and commands run, and print what it says that they print."""

import re
import shlex
from pathlib import Path

import pytest

from support.examples import examples_of, outputs_of, write_examples
from support.programs.processes import run_process

TUTORIAL = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")


# Each compiles all the examples, a minute of the processor's, which others may be using.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("tutorial")
    write_examples(TUTORIAL, path / "tutorial.py")
    return path


def run(place, *arguments):
    return run_process("-W", "ignore", *arguments, cwd=place).stdout


def test_examples_run_and_print_what_is_shown(place):
    outputs = outputs_of(run(place, "tutorial.py"))
    for (code, expected), output in zip(examples_of(TUTORIAL), outputs, strict=True):
        assert output.rstrip() == expected.rstrip(), code
    for page in ("slow.html", "plan.html", "trace.html"):
        assert "<html" in (place / page).read_text(encoding="utf-8")


COMMANDS = re.findall(r"^pytensor-fuse (.*)$", TUTORIAL, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command, place):
    output = run(place, "-m", "pytensor_fuse", *shlex.split(command))
    assert output or "--html" in command


def test_there_are_commands():
    assert len(COMMANDS) == 3


def test_links_within_the_page_lead_somewhere():
    headings = re.findall(r"^#+ (.*)$", TUTORIAL, re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-") for each in headings}
    links = re.findall(r"\]\(#(.*?)\)", TUTORIAL)
    assert links
    assert set(links) <= anchors
