"""The memory of this process."""

from __future__ import annotations

import sys
from pathlib import Path


def reset_peak() -> None:
    """Let the peak start anew; Linux only."""
    Path("/proc/self/clear_refs").write_text("5")


def resident_bytes() -> int:
    """Bytes in memory now, where the platform tells (Linux), else 0."""
    return _of_status("VmRSS:") or 0


def peak_bytes() -> int:
    # Unlike getrusage's, this figure does not start at the size of the parent that forked.
    peak = _of_status("VmHWM:")
    if peak is not None:
        return peak
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _of_status(name: str) -> int | None:
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    (line,) = (x for x in status.read_text().splitlines() if x.startswith(name))
    return int(line.split()[1]) * 1024
