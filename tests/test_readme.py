"""The README's examples run, and print what it says that they print."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
# A Python block, and the text block that shows its output if one follows directly.
EXAMPLE = re.compile(
    r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE
)
SEPARATOR = "--- end of example ---"


def test_examples_run_and_print_what_is_shown(tmp_path: Path):
    # The examples read on from one another, and switch the pass on and off: one process of
    # their own, in order.
    readme = README.read_text(encoding="utf-8")
    assert "<!-- example -->" not in readme, "the example is missing"
    examples = EXAMPLE.findall(readme)
    assert any(expected for _, expected in examples), "no example shows what it prints"
    script = tmp_path / "examples.py"
    script.write_text("".join(f"{code}\nprint({SEPARATOR!r})\n" for code, _ in examples))
    run = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert run.returncode == 0, run.stderr
    outputs = run.stdout.split(f"{SEPARATOR}\n")
    for (code, expected), output in zip(examples, outputs, strict=False):
        if expected:
            assert output.rstrip() == expected.rstrip(), code
