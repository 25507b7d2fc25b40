"""Functions that run without C get the same virtual machines, and that of C is not imported."""

from __future__ import annotations

import pytensor
import pytest

from support.programs.processes import run_python

START = """
    import sys
    import numpy as np
    import pytensor, pytensor_fuse
    import pytensor.tensor as pt
    from pytensor.compile.mode import Mode
    from pytensor.link.vm import VMLinker

    NAME = "pytensor.link.c.cvm"
    x = pt.vector("x")

    def machine(**options):
        linker = VMLinker(use_cloop=False, **options)
        f = pytensor.function([x], pt.exp(x) + 1, mode=Mode(linker, "fast_compile"))
        np.testing.assert_array_equal(f(np.zeros(2)), [2.0, 2.0])
        return type(f.vm)

    KINDS = [
        {},
        {"lazy": True},
        {"lazy": False},
        {"allow_gc": False},
        {"allow_partial_eval": True},
        {"callback": lambda **given: None},
    ]
    ours = [machine(**options) for options in KINDS]
    assert NAME not in sys.modules
"""


def test_the_same_machines() -> None:
    run_python(
        START,
        """
        with pytensor_fuse.enabled(False):
            stock = [machine(**options) for options in KINDS]
        assert NAME in sys.modules
        assert ours == stock == [machine(**options) for options in KINDS]
        """,
    )


def test_mode_fast_compile() -> None:
    run_python(
        START,
        """
        f = pytensor.function([x], x * 2, mode="FAST_COMPILE")
        np.testing.assert_array_equal(f(np.ones(2)), [2.0, 2.0])
        assert NAME not in sys.modules
        """,
    )


@pytest.mark.skipif(not pytensor.config.cxx, reason="there is no C compiler")
def test_what_runs_in_c_has_its_machine() -> None:
    run_python(
        START,
        """
        f = pytensor.function([x], x * 2, mode=Mode("cvm", "fast_compile"))
        assert type(f.vm).__name__ == "CVM" and NAME in sys.modules
        np.testing.assert_array_equal(f(np.ones(2)), [2.0, 2.0])
        assert machine() is ours[0]
        """,
    )
