"""The text of functions: its definitions and declarations, and that it is deterministic."""

from __future__ import annotations

import re
import subprocess
import sys

import llvmlite.binding as llvm
import pytest

from pytensor_fuse._native.mathematics import (
    FUNCTIONS,
    LANES,
    Target,
    definitions,
    definitions_and_declarations,
    symbol,
)

ALL = [
    (name, element, lanes) for name in FUNCTIONS for element in ("f64", "f32") for lanes in LANES
]


def test_symbols() -> None:
    assert symbol("exp", "f64", 8) == "fuse.exp.v8f64"
    assert symbol("exp", "f32", 1) == "fuse.exp.f32"


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (("expo", "f64", 8), "no function 'expo'"),
        (("exp", "f16", 8), "no element 'f16'"),
        (("exp", "f64", 3), "no vectors of 3 lanes"),
    ],
)
def test_wrong_requests_are_named(request_: tuple[str, str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        definitions([request_], Target(fma=True), inline=False)


@pytest.mark.parametrize("fma", [True, False])
def test_everything_parses_and_is_defined_once(fma: bool) -> None:
    text, declarations = definitions_and_declarations(ALL, Target(fma=fma), inline=True)
    defined = re.findall(r"^define .*@([\w.]+)\(", text, flags=re.MULTILINE)
    assert len(defined) == len(set(defined))
    assert {symbol(*one) for one in ALL} <= set(defined)
    assert len(declarations) == len(set(declarations))
    llvm.parse_assembly("\n".join([*declarations, text])).verify()


def test_order_and_repetitions_of_requests_do_not_matter() -> None:
    target = Target(fma=True)
    requests = [("sin", "f64", 8), ("exp", "f64", 2), ("exp", "f32", 8), ("cos", "f64", 8)]
    once = definitions(requests, target, inline=False)
    assert definitions([*reversed(requests), *requests], target, inline=False) == once


def test_text_is_the_same_in_every_process() -> None:
    program = (
        "import hashlib; from pytensor_fuse._native.mathematics import *;"
        "text = definitions([(n, 'f64', 4) for n in FUNCTIONS], Target(fma=False), inline=True);"
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]


def test_without_fma_nothing_calls_it() -> None:
    assert "llvm.fma" not in definitions(ALL, Target(fma=False), inline=False)


def test_arithmetic_is_strict() -> None:
    text = definitions(ALL, Target(fma=True), inline=False)
    assert not re.search(r"\b(fast|nnan|ninf|nsz|arcp|contract|afn|reassoc)\b", text)


def test_only_inline_functions_are_copied() -> None:
    assert "alwaysinline" not in definitions(ALL, Target(fma=True), inline=False)
    text = definitions([("sin", "f64", 8)], Target(fma=True), inline=True)
    assert text.count("alwaysinline") == 1


def test_single_numbers_are_copied_into_loops_only() -> None:
    request = ("log1p", "f64", 1)
    for in_loops, times in (((), 0), ({request}, 1)):
        text, _ = definitions_and_declarations([request], Target(fma=True), in_loops=in_loops)
        assert text.count("alwaysinline") == times
    # Longer inlined copies than these cost more than calls.
    text, _ = definitions_and_declarations([request] * 20, Target(fma=True), in_loops={request})
    assert "alwaysinline" not in text
