"""LLVM's objects are created and freed under one lock, which is held while the process forks."""

from __future__ import annotations

import weakref

import pytest

from pytensor_fuse._native.runtime import llvm

TEXT = "define i64 @run() {\n  ret i64 7\n}\n"


def test_a_module_is_disposed_of_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disposal takes llvmlite's own lock, which a child would inherit if it were held."""
    are_held: list[bool] = []
    parse = llvm._module

    def parsed(text: str):
        module = parse(text)
        weakref.finalize(module, lambda: are_held.append(llvm._lock.locked()))
        return module

    monkeypatch.setattr(llvm, "_module", parsed)
    assert llvm.object_code(TEXT)
    assert are_held == [True]
