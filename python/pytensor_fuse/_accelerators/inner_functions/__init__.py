"""Inner functions: functions that run without C run their inner functions without C, too."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator
from pytensor_fuse._pytensor.compat.checks import Does, Takes

ACCELERATOR: Final = Accelerator(
    title="inner functions of functions that run without C are not compiled in C",
    replaces="HasInnerFunction.link_mode",
    skips=(
        "the compilation in C of inner functions, as of `Scan`, where the outer function runs "
        "without C, as in mode FAST_COMPILE: nine seconds for the initial point of a model "
        "with an LKJ prior"
    ),
    ground=(
        Does("pytensor.compile.inner_function:HasInnerFunction.link_mode"),
        Does("pytensor.compile.inner_function:link_only_mode"),
        Takes("pytensor.compile.inner_function:HasInnerFunction.link_mode", ("self, impl",)),
    ),
    since=(3, 3),
)
