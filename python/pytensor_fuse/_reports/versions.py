"""The versions that a report was made with."""

from __future__ import annotations

import pytensor

from pytensor_fuse._core import __version__


def versions() -> dict[str, str]:
    """Return the versions of PyTensor and of this package, by name."""
    return {"pytensor": pytensor.__version__, "pytensor_fuse": __version__}
