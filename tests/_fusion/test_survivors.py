"""The list of mutants that no test notices: each with a reason, and of the sources as they are."""

from __future__ import annotations

import re
from pathlib import Path

RUST = Path(__file__).parents[2] / "rust"
SURVIVORS = (RUST / "mutants/survivors.txt").read_text(encoding="utf-8").splitlines()
LINE = re.compile(
    r"(?P<file>\S+\.rs):(?P<line>\d+) (?P<change>.+) in (?P<function>\w+) -- (?P<reason>.+)"
)


def complaint(text: str) -> str | None:
    """What is wrong with a line of the list."""
    found = LINE.fullmatch(text)
    if found is None:
        return "has no reason"
    source = (RUST / "core/src" / found["file"]).read_text(encoding="utf-8").splitlines()
    above = source[: int(found["line"])]
    is_there = found["change"].split(" ")[0 if " -> " in found["change"] else -1] in above[-1]
    if found["change"].startswith(("body -> ", "guard ")):
        is_there = found["change"].startswith("guard ") or f"fn {found['function']}" in above[-1]
    if found["change"].endswith(" deleted"):
        is_there = found["change"].removesuffix(" deleted") in above[-1]
    if not is_there or not any(f"fn {found['function']}" in line for line in above):
        return "is not where it is said to be: run the mutants again"
    return None


def test_survivors_have_reasons_and_are_those_of_the_sources() -> None:
    found = {line: text for line in SURVIVORS if (text := complaint(line)) is not None}
    assert SURVIVORS
    assert not found
