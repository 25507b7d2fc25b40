"""What accelerators gain is listed by the status, and is what the table of figures has."""

from __future__ import annotations

from pathlib import Path

import pytensor_fuse
from pytensor_fuse._accelerators import NAMES, record_of

TABLE = Path(__file__).parents[2] / "benchmarks" / "README.md"


def measured() -> dict[str, list[tuple[float, str]]]:
    """The figures of each accelerator in the table, and on which graphs."""
    found: dict[str, list[tuple[float, str]]] = {}
    for line in TABLE.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 3 and cells[1].endswith(" against all others"):
            name = cells[1].removeprefix("whole compile, with ").partition(" ")[0]
            found.setdefault(name, []).append((float(cells[3].rstrip("x")), cells[2]))
    return found


def test_each_has_the_largest_of_its_figures() -> None:
    figures = measured()
    gains = {name: gain for name in NAMES if (gain := record_of(name).gain) is not None}
    assert set(gains) == set(figures) <= set(NAMES)
    assert len(figures) > 5
    for name, gain in gains.items():
        assert gain.ratio == max(ratio for ratio, _ in figures[name]), name
        assert (gain.ratio, gain.graph) in figures[name]


def test_the_status_lists_them() -> None:
    status = pytensor_fuse.status()["accelerators"]
    lines = str(status).splitlines()
    for name, part in status.parts.items():
        assert part.gain == record_of(name).gain
        [line] = [line for line in lines if line.split()[:1] == [name]]
        assert line.endswith(f"({part.gain})") == (part.gain is not None)
    assert pytensor_fuse.status()["fusion"].gain is None
