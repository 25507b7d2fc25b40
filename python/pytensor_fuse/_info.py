"""Facts about the installation, for bug reports."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

from pytensor.configdefaults import config

from pytensor_fuse._activation.switch import status
from pytensor_fuse._cache.information import CacheInfo, cache_info
from pytensor_fuse._core import __version__
from pytensor_fuse._reports.report import TextReport
from pytensor_fuse._startup.features import native_math_now

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytensor_fuse._activation.status import FeatureStatus, Status

# The version of the dicts' layout.
_FORMAT: Final = 1

# The packages that results depend on, by the names of their distributions.
_PACKAGES: Final = ("pytensor", "numpy", "scipy", "numba", "llvmlite", "pymc", "nutpie", "jax")

# The environment variables that configure this package and PyTensor.
_VARIABLES: Final = (
    "PYTENSOR_FUSE",
    "PYTENSOR_FUSE_CACHE",
    "PYTENSOR_FUSE_EFFORT",
    "PYTENSOR_FUSE_NATIVE",
    "PYTENSOR_FUSE_NATIVE_MATH",
    "PYTENSOR_FLAGS",
    "PYTENSORRC",
)


@dataclass(frozen=True, repr=False)
class Info(TextReport):
    """Facts about the installation. Printed, it is what a bug report needs.

    Attributes
    ----------
    versions
        The versions of packages, by name; None for a package that is not installed.
    python, platform, executable
        The version of Python, the operating system with the processor's architecture, and the
        interpreter.
    processors
        The number of processors; None if unknown.
    linker, compiler
        PyTensor's default linker, and its C compiler.
    environment
        The environment variables that configure this package and PyTensor.
    features
        The states of the features, as from `status`.
    native_math
        The mathematical functions that machine code calls: ``"vector"`` or ``"libm"``.
    cache
        The state of the cache.
    """

    versions: Mapping[str, str | None]
    python: str
    platform: str
    executable: str
    processors: int | None
    linker: str
    compiler: str
    environment: Mapping[str, str]
    features: Status
    native_math: str
    cache: CacheInfo

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, ready for JSON.

        Returns
        -------
        dict
            ``format`` is the version of this layout.
        """
        cache = self.cache
        return {
            "format": _FORMAT,
            **vars(self),
            "features": {name: _plain(feature) for name, feature in self.features.items()},
            "cache": {
                "level": cache.level,
                "path": None if cache.path is None else str(cache.path),
                "entries_on_disk": cache.entries_on_disk,
                "bytes_on_disk": cache.bytes_on_disk,
            },
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = ["versions"]
        lines += [f"  {name:<16} {of or 'not installed'}" for name, of in self.versions.items()]
        lines += [f"  {'python':<16} {self.python} on {self.platform}"]
        lines += [f"  {'processors':<16} {self.processors or 'unknown'}"]
        lines += [f"  {'linker':<16} {self.linker}, C compiler: {self.compiler or 'none'}"]
        lines += ["environment"] if self.environment else []
        lines += [f"  {name}={value}" for name, value in self.environment.items()]
        lines.append("features")
        for name, feature in self.features.items():
            line = f"  {name:<16} {_state(feature)}"
            if name == "native" and feature.is_on:
                line += f", native_math={self.native_math}"
            off = [part for part in feature.parts.values() if not part.is_on]
            if feature.parts:
                line += f", {len(feature.parts) - len(off)} of {len(feature.parts)}"
            lines.append(line)
            if feature.is_on:
                lines += [f"    {part.name}: {_state(part)}" for part in off]
        cache = self.cache
        size = f"{cache.entries_on_disk} graphs, {cache.bytes_on_disk / 1e6:.1f} MB"
        lines += [
            "cache",
            f"  {'level':<16} {cache.level}",
            f"  {'disk':<16} {size}, {cache.path or 'nowhere'}",
        ]
        return "\n".join(lines)


def info() -> Info:
    """Return what a bug report needs: versions, machine, features and the state of the cache.

    Returns
    -------
    Info
        The facts; prints as text.

    Examples
    --------
    >>> import pytensor_fuse
    >>> print(pytensor_fuse.info())  # doctest: +ELLIPSIS
    versions
      pytensor-fuse ...
    """
    return Info(
        versions={"pytensor-fuse": __version__} | {name: _version(name) for name in _PACKAGES},
        python=platform.python_version(),
        platform=platform.platform(),
        executable=sys.executable,
        processors=os.cpu_count(),
        linker=config.linker,
        compiler=config.cxx,
        environment={name: os.environ[name] for name in _VARIABLES if name in os.environ},
        features=status(),
        native_math=native_math_now(),
        cache=cache_info(),
    )


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


def _state(feature: FeatureStatus) -> str:
    if feature.is_on:
        return "on"
    if not feature.is_wanted:
        return "off: not wanted"
    return f"off: {feature.reason or 'another package has replaced what it changes'}"
