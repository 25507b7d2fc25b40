"""The command ``python -m pytensor_fuse info``: facts about the installation for bug reports."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from pytensor_fuse._core import __version__

if TYPE_CHECKING:
    from pytensor_fuse._activation.status import FeatureStatus

# The version of the format of the dicts.
_FORMAT = 1

# The packages that results depend on, by the names of their distributions.
_PACKAGES = ("pytensor", "numpy", "scipy", "numba", "llvmlite", "pymc", "nutpie", "jax")

# The environment variables that configure this package and PyTensor.
_VARIABLES = (
    "PYTENSOR_FUSE",
    "PYTENSOR_FUSE_CACHE",
    "PYTENSOR_FUSE_EFFORT",
    "PYTENSOR_FUSE_NATIVE",
    "PYTENSOR_FUSE_NATIVE_MATH",
    "PYTENSOR_FLAGS",
    "PYTENSORRC",
)


def information() -> dict[str, Any]:
    """Return the facts in plain types."""
    from pytensor.configdefaults import config

    from pytensor_fuse._activation.switch import status
    from pytensor_fuse._cache.information import cache_info
    from pytensor_fuse._startup.features import native_math_now

    cache = cache_info()
    return {
        "format": _FORMAT,
        "versions": {"pytensor-fuse": __version__} | {name: _version(name) for name in _PACKAGES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "executable": sys.executable,
        "linker": config.linker,
        "compiler": config.cxx,
        "environment": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
        "features": {name: _plain(feature) for name, feature in status().items()},
        "native_math": native_math_now(),
        "cache": {
            "level": cache.level,
            "path": None if cache.path is None else str(cache.path),
            "entries_on_disk": cache.entries_on_disk,
            "bytes_on_disk": cache.bytes_on_disk,
        },
    }


def text_of(found: dict[str, Any]) -> str:
    """Return the facts as text, one line for each."""
    lines = ["versions"]
    lines += [
        f"  {name:<16} {value or 'not installed'}" for name, value in found["versions"].items()
    ]
    lines += [f"  {'python':<16} {found['python']} on {found['platform']}"]
    lines += [f"  {'linker':<16} {found['linker']}, C compiler: {found['compiler'] or 'none'}"]
    lines += ["environment"] if found["environment"] else []
    lines += [f"  {name}={value}" for name, value in found["environment"].items()]
    lines.append("features")
    for name, feature in found["features"].items():
        lines.append(f"  {name:<16} {_state(feature)}")
        if name == "native" and feature["is_on"]:
            lines[-1] += f", native_math={found['native_math']}"
        off = [part for part in feature["parts"] if not feature["parts"][part]["is_on"]]
        if feature["parts"]:
            lines[-1] += f", {len(feature['parts']) - len(off)} of {len(feature['parts'])}"
        if feature["is_on"]:
            lines += [f"    {part}: {_state(feature['parts'][part])}" for part in off]
    cache = found["cache"]
    size = f"{cache['entries_on_disk']} graphs, {cache['bytes_on_disk'] / 1e6:.1f} MB"
    lines += [
        "cache",
        f"  {'level':<16} {cache['level']}",
        f"  {'disk':<16} {size}, {cache['path'] or 'nowhere'}",
    ]
    return "\n".join(lines)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _plain(feature: FeatureStatus) -> dict[str, Any]:
    return {
        "is_on": feature.is_on,
        "is_wanted": feature.is_wanted,
        "reason": feature.reason,
        "parts": {name: _plain(part) for name, part in feature.parts.items()},
    }


def _state(feature: dict[str, Any]) -> str:
    if feature["is_on"]:
        return "on"
    if not feature["is_wanted"]:
        return "off: not wanted"
    return f"off: {feature['reason'] or 'another package has replaced what it changes'}"
