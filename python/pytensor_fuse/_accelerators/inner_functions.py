"""Inner functions: functions that run without C run their inner functions without C, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._pytensor import inner_functions
from pytensor_fuse._pytensor.drop_ins import DropIn

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    # PyTensor 3.3 has the method; this accelerator is not for older versions.
    from pytensor.compile.inner_function import HasInnerFunction

    return DropIn(HasInnerFunction, "link_mode", inner_functions.link_mode)
