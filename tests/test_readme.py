"""The README's examples run, and print what it says that they print."""

import os
from pathlib import Path

from support.examples import examples_of, outputs_of, write_examples
from support.programs.processes import run_process

README = Path(__file__).parents[1] / "README.md"


def test_examples_run_and_print_what_is_shown(tmp_path: Path):
    # They switch the pass on and off: a process of their own.
    readme = README.read_text(encoding="utf-8")
    assert "<!-- example -->" not in readme, "the example is missing"
    examples = examples_of(readme)
    assert any(expected for _, expected in examples), "no example shows what it prints"
    write_examples(readme, tmp_path / "examples.py")
    # As for a user, but for what an earlier run left on disk.
    env = {**os.environ, "PYTENSOR_FUSE_CACHE": "memory"}
    outputs = outputs_of(run_process("examples.py", cwd=tmp_path, env=env).stdout)
    for (code, expected), output in zip(examples, outputs, strict=True):
        if expected:
            assert output.rstrip() == expected.rstrip(), code
