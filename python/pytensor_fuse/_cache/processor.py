"""The processor: code that was compiled for one may be more than another can run.

PyTensor has its compiler make use of all that the processor offers. A home directory that several
machines share may hold code of each.
"""

from __future__ import annotations

from functools import cache
from typing import Final

# What the system tells of each processor, the first one first, and how much of it is read.
_INFORMATION: Final = "/proc/cpuinfo"
_MOST_BYTES: Final = 16384

# What it is, as x86 and Arm call that, and what it can do.
_TOLD_BY: Final = (
    *("vendor_id", "cpu family", "model", "model name", "stepping"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision"),
)
_ABLE_TO: Final = ("flags", "Features")


@cache
def processor() -> str | None:
    """Return what tells this machine's processor from others; None where the system tells nothing.

    Only Linux does in a file.
    """
    try:
        with open(_INFORMATION, encoding="utf-8", errors="replace") as file:
            first, end, _ = file.read(_MOST_BYTES).partition("\n\n")
    except OSError:
        return None
    told = [line for line in first.splitlines() if line.partition("\t")[0] in _TOLD_BY]
    able = [line for line in first.splitlines() if line.partition("\t")[0] in _ABLE_TO]
    return "\n".join(told + able) if able and end else None
