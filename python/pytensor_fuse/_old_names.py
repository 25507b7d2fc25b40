"""Old names of the package, which warn and lead to the new ones until the next version."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_REPORTS: Final = (
    *("Audit", "CacheInfo", "FeatureStatus", "FusionPlan", "JoinReason", "JoinReport"),
    *("JoinReports", "JoinsKnown", "Kernel", "LinalgReason", "MatrixPurpose", "MatrixReport"),
    *("MatrixReports", "MatrixUse", "NativeReport", "NotShared", "PlanStats", "Reason", "Status"),
    *("FrozenGraph", "FrozenNode", "FrozenVariable", "Trace", "TraceDiff", "WhyNot"),
)
_EXCEPTIONS: Final = (
    *("CacheError", "DigestError", "FreezeError", "FusionError", "NativeLinkError"),
    *("RegistrationError", "StalePlanError"),
)

# For each old name, where its value is, and the words for what to write instead.
OLD_NAMES: Final[dict[str, tuple[str, str]]] = {
    **{name: (f"reports:{name}", f"pytensor_fuse.reports.{name}") for name in _REPORTS},
    **{name: (f"exceptions:{name}", f"pytensor_fuse.exceptions.{name}") for name in _EXCEPTIONS},
    "cache_info": ("cache:info", "pytensor_fuse.cache.info()"),
    "cached": ("_old_names:cached", 'pytensor_fuse.enabled(False, "cache")'),
    "clear_cache": ("cache:clear", "pytensor_fuse.cache.clear()"),
    "explain_joins": ("_joins.reports:explain_joins", 'pytensor_fuse.explain(f, "joins")'),
    "explain_linalg": (
        "_audit.sections.matrices.explain:explain_linalg",
        'pytensor_fuse.explain(f, "linalg")',
    ),
    "explain_native": (
        "_native.explain.explain:explain_native",
        'pytensor_fuse.explain(f, "native")',
    ),
    "is_enabled": ("_old_names:is_enabled", 'pytensor_fuse.status()["fusion"].is_on'),
    "same_graph": (
        "_identity.frozen:same_graph",
        "pytensor_fuse.freeze(a) == pytensor_fuse.freeze(b)",
    ),
    "structured": ("linalg:structured", "pytensor_fuse.linalg.structured"),
    "trace_rewrites": ("_trace.trace:trace", "pytensor_fuse.trace()"),
    "why_missed": ("_cache.information:explain_cache", 'pytensor_fuse.explain(f, "cache")'),
}


def old_value(name: str) -> Any:
    """Return the value of an old name, with a warning that names its replacement."""
    place, instead = OLD_NAMES[name]
    warnings.warn(
        f"pytensor_fuse.{name} will be removed in the next version; use {instead}",
        FutureWarning,
        stacklevel=3,
    )
    module, _, attribute = place.partition(":")
    return getattr(import_module(f"pytensor_fuse.{module}"), attribute)


def cached(flag: bool = True) -> AbstractContextManager[None]:
    """Compile with the cache, or without it, in a block or a function."""
    from pytensor_fuse._activation.switch import enabled

    if not isinstance(flag, bool):
        raise TypeError(f"flag must be True or False, not {flag!r}")
    return enabled(flag, "cache")


def is_enabled(feature: str = "fusion") -> bool:
    """Return whether a feature, or an accelerator such as ``"accelerators:clones"``, is on."""
    from pytensor_fuse._activation.switch import status

    whole, _, part = feature.partition(":")
    features = status()
    if whole not in features or (part and part not in features[whole].parts):
        raise ValueError(f"no feature is called {feature!r}; there are {', '.join(features)}")
    return features[whole].parts[part].is_on if part else features[whole].is_on
