"""The Python examples of a page of Markdown, and what each prints."""

import re

# A Python block, and the text block that shows its output if one follows directly.
_EXAMPLE = re.compile(
    r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE
)
_SEPARATOR = "--- end of example ---"


def examples_of(page):
    """The code of each, and the output that is shown, empty if none is."""
    return _EXAMPLE.findall(page)


def write_examples(page, script):
    """Write them as one program, for they read on from one another."""
    codes = (code for code, _ in examples_of(page))
    script.write_text("".join(f"{code}\nprint({_SEPARATOR!r})\n" for code in codes))


def outputs_of(printed):
    """What each example has printed, given what the program has."""
    *outputs, rest = printed.split(f"{_SEPARATOR}\n")
    assert rest == ""
    return outputs
