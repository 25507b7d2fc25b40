"""The package's own exceptions.

All but `NativeLinkError` are a `FusionError`:

>>> from pytensor_fuse.exceptions import FusionError, StalePlanError
>>> issubclass(StalePlanError, FusionError)
True
"""

from pytensor_fuse._errors import (
    CacheError,
    DigestError,
    FreezeError,
    FusionError,
    NativeLinkError,
    RegistrationError,
    StalePlanError,
)

__all__ = [
    "CacheError",
    "DigestError",
    "FreezeError",
    "FusionError",
    "NativeLinkError",
    "RegistrationError",
    "StalePlanError",
]
