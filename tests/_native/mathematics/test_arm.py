"""Functions on 64-bit ARM: they use NEON, and have the same bits as on this processor.

The emulator is optional: `pip install unicorn pyelftools`. Without it, only the assembly is tested.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from _native.mathematics import arm, samples
from _native.mathematics.machine import compiled
from pytensor_fuse._native.mathematics import FUNCTIONS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vectors_are_those_of_neon(name):
    text = arm.assembly(name)
    loop = text[text.index("run:") :]
    assert re.search(r"\tf\w+\tv\d+\.2d", text), "no arithmetic on two doubles"
    # No function of the C library is called, as it would be for a missing instruction.
    called = set(re.findall(r"\tbl?\t(\S+)", text))
    assert all("fuse." in one or one.startswith(".L") for one in called), called
    assert "ret" in loop


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_are_those_of_this_processor(name):
    if FUNCTIONS[name].arguments == 2:
        columns = samples.power_arguments(600, seed=3)
    else:
        columns = (samples.arguments(name, 600, seed=3),)
    size = columns[0].size // arm.LANES * arm.LANES
    columns = tuple(column[:size] for column in columns)
    found, expected = arm.emulated(name, *columns), compiled(name)(*columns)
    same = (found.view(np.int64) == expected.view(np.int64)) | (
        np.isnan(found) & np.isnan(expected)
    )
    assert same.all(), [
        (*(float(column[k]).hex() for column in columns), found[k], expected[k])
        for k in np.flatnonzero(~same)[:5]
    ]
