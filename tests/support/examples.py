"""The Python examples of a Markdown page, and their output."""

import re

# A Python block, and the text block that shows its output if one follows directly.
_EXAMPLE = re.compile(
    r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE
)
_SEPARATOR = "--- end of example ---"


def examples_of(page):
    """Return the code of each example, and the output that is shown; empty if none is."""
    return _EXAMPLE.findall(page)


def write_examples(page, script):
    """Write them as one program, since they build on each other."""
    codes = (code for code, _ in examples_of(page))
    script.write_text("".join(f"{code}\nprint({_SEPARATOR!r})\n" for code in codes))


def outputs_of(printed):
    """Return the output of each example, given that of the program."""
    *outputs, rest = printed.split(f"{_SEPARATOR}\n")
    assert rest == ""
    return outputs
