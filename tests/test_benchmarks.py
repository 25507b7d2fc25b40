"""The harness of the benchmarks: the batches of calls, and the table of figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.measuring import published, turns
from benchmarks.measuring.rows import Row
from benchmarks.measuring.turns import call_times

TABLE = """\
before
<!-- figures: written by make bench -->
Some machine:

| what | graph | figure | asked | met |
| --- | --- | --- | --- | --- |
| planning | a | 12.3x | >= 12x | yes |
| planning | b | 10.4x | >= 12x | NO |
| run time | a | 1x |  |  |
| run time | b | 4x |  |  |
| run time | geometric mean | 2x | <= 1.02x | NO |
| planning | c | 1.3x | <= 1.3x | NO |
| small joins | the slowest | 1.02x | <= 1.03x | yes |
| import |  | 35 ms | <= 50 ms | yes |
<!-- end of figures -->
after
"""


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]


def changed(text: str) -> tuple[list[str], list[str]]:
    """The lines of the table that are gone, and those that are new."""
    before, after = lines(TABLE), lines(text)
    return [x for x in before if x not in after], [x for x in after if x not in before]


def test_a_part_of_the_benchmarks_replaces_its_own_rows_alone():
    rows = [Row("import", "", 40, " ms", ceiling=50), Row("planning", "b", 13, floor=12)]
    text = published.updated(TABLE, rows, "Some machine", is_whole=False)
    gone = ["| planning | b | 10.4x | >= 12x | NO |", "| import |  | 35 ms | <= 50 ms | yes |"]
    new = ["| planning | b | 13x | >= 12x | yes |", "| import |  | 40 ms | <= 50 ms | yes |"]
    assert changed(text) == (gone, new)
    assert [lines(text).index(line) for line in new] == [lines(TABLE).index(line) for line in gone]
    assert text.startswith("before\n")
    assert text.endswith("<!-- end of figures -->\nafter\n")


def test_new_rows_follow_the_last_of_their_kind():
    rows = [Row("planning", "d", 1.0), Row("key", "a", 2.0)]
    text = published.updated(TABLE, rows, "Some machine", is_whole=False)
    assert changed(text) == ([], ["| planning | d | 1x |  |  |", "| key | a | 2x |  |  |"])
    assert lines(text).index("| planning | d | 1x |  |  |") == 8
    assert lines(text)[-1] == "| key | a | 2x |  |  |"


def test_a_mean_is_of_all_rows_of_its_kind():
    rows = [Row("run time", "b", 9.0, mean_ceiling=1.02)]
    _, new = changed(published.updated(TABLE, rows, "Some machine", is_whole=False))
    assert new == [
        "| run time | b | 9x |  |  |",
        "| run time | geometric mean | 3x | <= 1.02x | NO |",
    ]


def test_rows_whose_graphs_are_found_replace_all_of_their_kind():
    rows = [Row("small joins", "another", 1.01, ceiling=1.03, are_all=True)]
    text = published.updated(TABLE, rows, "Some machine", is_whole=False)
    assert changed(text) == (
        ["| small joins | the slowest | 1.02x | <= 1.03x | yes |"],
        ["| small joins | another | 1.01x | <= 1.03x | yes |"],
    )


def test_all_benchmarks_replace_the_table():
    rows = [Row("run time", "b", 9.0, mean_ceiling=1.02), Row("planning", "b", 13, floor=12)]
    text = published.updated(TABLE, rows, "Another machine", is_whole=True)
    assert lines(text)[2:] == [
        "| run time | b | 9x |  |  |",
        "| run time | geometric mean | 9x | <= 1.02x | NO |",
        "| planning | b | 13x | >= 12x | yes |",
    ]
    assert "Another machine:\n\n" in text
    assert "Some machine" not in text


def test_rows_of_another_machine_say_so():
    rows = [Row("import", "", 40, " ms", ceiling=50)]
    text = published.updated(TABLE, rows, "Another machine", is_whole=False)
    assert "\nSome machine; some rows later, Another machine:\n\n" in text
    assert published.updated(text, rows, "Another machine", is_whole=False) == text
    text = published.updated(text, rows, "Another", is_whole=False)
    assert "; some rows later, Another machine; some rows later, Another:\n\n" in text


def test_long_names_of_machines_are_wrapped():
    machine = ", ".join(f"package-{n} {n}.0.1" for n in range(20))
    text = published.updated(TABLE, [Row("import", "", 40, " ms")], machine, is_whole=False)
    assert max(map(len, text.splitlines())) <= 120
    assert published.updated(text, [Row("import", "", 40, " ms")], machine, is_whole=False) == text


def test_the_first_calls_do_not_size_a_batch():
    """They take a millisecond more than the others, of a microsecond each."""
    clock, taken = iter(range(100)), []

    def seconds_of_each(n_calls: int) -> float:
        taken.append(n_calls)
        return 1e-6 + (1e-3 / n_calls if next(clock) == 0 else 0)

    assert turns._calls_per_batch(seconds_of_each, 1e-3) == 1000
    assert taken[:2] == [3, 3]
    assert turns._calls_per_batch(seconds_of_each, 0.0) == 1


def test_a_page_without_the_markers_is_refused():
    with pytest.raises(SystemExit, match="must contain"):
        published.updated("no markers", [], "Some machine", is_whole=True)


def test_batches_take_their_time_though_first_calls_are_slow():
    now, calls, blocks = 0.0, Counter[str](), list[tuple[str, int]]()

    def call(side: str, seconds: float) -> None:
        nonlocal now
        calls[side] += 1
        now += 50 * seconds if calls[side] == 1 else seconds

    @contextmanager
    def within(side: str) -> Iterator[None]:
        before = calls[side]
        yield
        blocks.append((side, calls[side] - before))

    sides = {"stock": lambda: call("stock", 1e-3), "ours": lambda: call("ours", 5e-4)}
    times = call_times(sides, (), 1, batch=0.1, clock=lambda: now, within=within)
    assert blocks[-2:] == [("stock", 100), ("ours", 200)]
    assert times == {"stock": [pytest.approx(1e-3)], "ours": [pytest.approx(5e-4)]}


def test_what_takes_longer_than_a_batch_is_called_once():
    calls = Counter[str]()
    times = call_times({"ours": lambda: calls.update("x")}, (), 1, batch=0.1, clock=calls.total)
    assert times == {"ours": [1]}
    assert calls.total() < 10
