"""The identity of the processor, since code for one may not run on another.

PyTensor's compiler uses all features of the processor. A home directory that several
machines share may contain code for each.
"""

from __future__ import annotations

from functools import cache
from typing import Final

# The system's description of each processor, in order, and the number of bytes to read.
_INFORMATION: Final = "/proc/cpuinfo"
_MOST_BYTES: Final = 16384

# The fields that identify the processor, on x86 and Arm, and those that list its features.
_TOLD_BY: Final = (
    *("vendor_id", "cpu family", "model", "model name", "stepping"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision"),
)
_ABLE_TO: Final = ("flags", "Features")


@cache
def processor() -> str | None:
    """Return a text that identifies this machine's processor; None if the system has none.

    Only Linux provides it in a file.
    """
    try:
        with open(_INFORMATION, encoding="utf-8", errors="replace") as file:
            first, end, _ = file.read(_MOST_BYTES).partition("\n\n")
    except OSError:
        return None
    told = [line for line in first.splitlines() if line.partition("\t")[0] in _TOLD_BY]
    able = [line for line in first.splitlines() if line.partition("\t")[0] in _ABLE_TO]
    return "\n".join(told + able) if able and end else None
