"""The guides: their examples run and print what is shown, and each answers a question by a call."""

import os
import re
import shutil
import sys

import pytensor
import pytest

from support.examples import examples_of, outputs_of, write_examples
from support.programs.processes import run_process
from support.web.pages import DOCS, name_of, text_of, without_code

# Those of these two are run by tests of their own.
ELSEWHERE = {"tutorial", "plans"}
WITH_EXAMPLES = [
    page
    for page in sorted([*DOCS.glob("*.md"), *DOCS.glob("reference/*.md")])
    if page.stem not in ELSEWHERE and examples_of(text_of(page))
]
IS_OLD = tuple(map(int, pytensor.__version__.split(".")[:2])) < (3, 3)

# A page that shows what rewriting did to a graph, node by node, shows that of newer versions.
OF_NEWER_VERSIONS = {"how_it_works", "linalg", "traces"}

# The line of a file, which is another one where examples are put together.
_PLACE = re.compile(r"[\w/.-]+\.py:\d+")


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples_run_and_print_what_is_shown(page, tmp_path):
    if IS_OLD and page.stem in OF_NEWER_VERSIONS:
        pytest.skip("it shows what PyTensor 3.3 and newer make of the graph")
    if page.stem == "how_it_works":
        pytest.importorskip("pymc")
    if page.stem == "c_entry" and (sys.platform == "win32" or shutil.which("cc") is None):
        pytest.skip("there is no C compiler")
    text = text_of(page)
    write_examples(text, tmp_path / "examples.py")
    # As for a user, but for what an earlier run left on disk.
    env = {**os.environ, "PYTENSOR_FUSE_CACHE": "memory"}
    done = run_process("examples.py", cwd=tmp_path, env=env)
    for (code, expected), output in zip(examples_of(text), outputs_of(done.stdout), strict=True):
        if expected:
            assert _PLACE.sub("FILE", output.rstrip()) == _PLACE.sub("FILE", expected.rstrip()), (
                code
            )


def test_examples_that_print_show_it():
    """Output that no page shows is compared with nothing."""
    silent = [
        (page.name, code)
        for page in WITH_EXAMPLES
        for code, expected in examples_of(text_of(page))
        if re.search(r"^\s*print\(", code, re.MULTILINE) and not expected
    ]
    # The state of a process, which differs between versions.
    assert {name for name, _ in silent} <= {"accelerators.md"}


INDEX = text_of(DOCS / "index.md")
QUESTIONS = re.findall(r"^\| \[(.*?)\]\((.*?)\) \| (.*) \|$", INDEX, re.MULTILINE)


def test_there_are_questions():
    asked = {question for question, _, _ in QUESTIONS}
    assert {
        "Why were these two not fused?",
        "What does my model spend its compile on?",
        "Is it safe?",
        "How do I switch it off?",
    } <= asked


@pytest.mark.parametrize(("question", "link", "call"), QUESTIONS, ids=[q for q, _, _ in QUESTIONS])
def test_a_question_is_a_heading_with_a_call(question, link, call):
    assert "`" in call
    path, _, anchor = link.partition("#")
    text = without_code(text_of(DOCS / path))
    title, *paragraphs = [part for part in text.split("\n\n") if part.strip()]
    heading = question
    if anchor:
        [heading] = re.findall(rf"^#+ ({re.escape(question.replace(' of it', ''))})$", text, re.M)
    else:
        assert title.startswith("# "), title
        assert title.endswith("?")
    assert heading.endswith("?")
    # The answer comes before anything else.
    assert "`" in paragraphs[0]


def pages_under(caption):
    return INDEX.partition(f":caption: {caption}\n\n")[2].partition("```")[0].split()


def test_every_guide_is_in_the_table():
    guides = pages_under("Guides")
    linked = {link.partition("#")[0].removesuffix(".md") for _, link, _ in QUESTIONS}
    assert len(guides) > 10
    assert set(guides) <= linked
    # A guide leads to the rules of linear algebra, one by one.
    rules = {"reference/linalg_rules", "reference/linalg_structures"}
    assert {page for page in pages_under("Reference") if "reference/" in page} - rules <= linked


@pytest.mark.parametrize(("name", "picture"), [("plan", "plan.svg"), ("model", "model_plan.svg")])
def test_the_picture_of_a_plan_is_what_is_drawn(name, picture, tmp_path):
    if name == "model":
        pytest.importorskip("pymc")
    # A process of its own, for PyTensor notes the lines of a program that tests would be part of.
    program = tmp_path / "pictures" / f"{name}.py"
    program.parent.mkdir()
    for page in (f"pictures/{name}.py", "how_it_works.md"):
        (tmp_path / page).write_text(text_of(DOCS / page), encoding="utf-8")
    run_process(f"pictures/{name}.py", cwd=tmp_path)
    assert text_of(program.parent / picture) == text_of(DOCS / "pictures" / picture), (
        f"draw it again: {sys.executable} docs/pictures/{name}.py"
    )


def test_the_picture_is_that_of_the_example():
    [example] = [
        code for code, _ in examples_of(text_of(DOCS / "plans.md")) if "weights = " in code
    ]
    drawn = text_of(DOCS / "pictures" / "plan.py")
    for line in ("weights = pt.exp(x)", "fgraph = FunctionGraph([x], [pt.log(weights"):
        assert line in example
        assert line in drawn
