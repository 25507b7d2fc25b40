"""Faster compiles for PyTensor: fusion, merging and joins, with a core in Rust.

>>> import pytensor
>>> import pytensor_fuse
>>> import pytensor.tensor as pt
>>> x = pt.vector("x")
>>> f = pytensor.function([x], pt.exp(x) + pt.sin(x))  # fused by this package

Importing the package replaces passes of PyTensor by its own; `disable` undoes this,
``PYTENSOR_FUSE=0`` in the environment prevents it, and `status` lists the active features.
`plan_fusion` shows the kernels that fusion would make, `audit` analyzes the cost of a function, and
`trace_rewrites` records the rewriting of a graph.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from pytensor_fuse._core import __version__
from pytensor_fuse._errors import (
    CacheError,
    DigestError,
    FreezeError,
    FusionError,
    NativeLinkError,
    RegistrationError,
    StalePlanError,
)
from pytensor_fuse._startup import waiting

if TYPE_CHECKING:
    from pytensor_fuse import graph, native, reports
    from pytensor_fuse._activation.status import FeatureStatus, Status
    from pytensor_fuse._activation.switch import disable, enable, enabled, is_enabled, status
    from pytensor_fuse._audit.audit import Audit, audit
    from pytensor_fuse._audit.sections.matrices.explain import (
        MatrixReport,
        MatrixReports,
        MatrixUse,
        NotShared,
        explain_linalg,
    )
    from pytensor_fuse._audit.sections.matrices.families import MatrixPurpose
    from pytensor_fuse._audit.sections.matrices.reasons import LinalgReason
    from pytensor_fuse._cache.information import CacheInfo, cache_info, clear_cache, why_missed
    from pytensor_fuse._cache.store.setting import cached
    from pytensor_fuse._fusion.why_not import Reason, WhyNot
    from pytensor_fuse._identity.frozen import (
        FrozenGraph,
        FrozenNode,
        FrozenVariable,
        freeze,
        same_graph,
    )
    from pytensor_fuse._joins.plans import JoinReason
    from pytensor_fuse._joins.reports import JoinReport, JoinReports, JoinsKnown, explain_joins
    from pytensor_fuse._linalg.structured import structured
    from pytensor_fuse._native.explain.explain import explain_native
    from pytensor_fuse._native.explain.report import NativeReport
    from pytensor_fuse._plan.plan import FusionPlan, plan_fusion
    from pytensor_fuse._plan.records import Kernel, PlanStats
    from pytensor_fuse._trace.trace import Trace, TraceDiff, trace_rewrites

__all__ = [
    "Audit",
    "CacheError",
    "CacheInfo",
    "DigestError",
    "FeatureStatus",
    "FreezeError",
    "FrozenGraph",
    "FrozenNode",
    "FrozenVariable",
    "FusionError",
    "FusionPlan",
    "JoinReason",
    "JoinReport",
    "JoinReports",
    "JoinsKnown",
    "Kernel",
    "LinalgReason",
    "MatrixPurpose",
    "MatrixReport",
    "MatrixReports",
    "MatrixUse",
    "NativeLinkError",
    "NativeReport",
    "NotShared",
    "PlanStats",
    "Reason",
    "RegistrationError",
    "StalePlanError",
    "Status",
    "Trace",
    "TraceDiff",
    "WhyNot",
    "__version__",
    "audit",
    "cache_info",
    "cached",
    "clear_cache",
    "disable",
    "enable",
    "enabled",
    "explain_joins",
    "explain_linalg",
    "explain_native",
    "freeze",
    "graph",
    "is_enabled",
    "load_ipython_extension",
    "native",
    "plan_fusion",
    "reports",
    "same_graph",
    "status",
    "structured",
    "trace_rewrites",
    "unload_ipython_extension",
    "why_missed",
]

# These modules import PyTensor, which importing the package must not do: see `_startup`.
_HOMES = {
    **dict.fromkeys(("Audit", "audit"), "_audit.audit"),
    "cached": "_cache.store.setting",
    **dict.fromkeys(("CacheInfo", "cache_info", "clear_cache", "why_missed"), "_cache.information"),
    **dict.fromkeys(
        ("FrozenGraph", "FrozenNode", "FrozenVariable", "freeze", "same_graph"), "_identity.frozen"
    ),
    **dict.fromkeys(("FusionPlan", "plan_fusion"), "_plan.plan"),
    **dict.fromkeys(("Kernel", "PlanStats"), "_plan.records"),
    **dict.fromkeys(("Reason", "WhyNot"), "_fusion.why_not"),
    "JoinReason": "_joins.plans",
    **dict.fromkeys(
        ("MatrixReport", "MatrixReports", "MatrixUse", "NotShared", "explain_linalg"),
        "_audit.sections.matrices.explain",
    ),
    "LinalgReason": "_audit.sections.matrices.reasons",
    "MatrixPurpose": "_audit.sections.matrices.families",
    **dict.fromkeys(("JoinReport", "JoinReports", "JoinsKnown", "explain_joins"), "_joins.reports"),
    "structured": "_linalg.structured",
    "NativeReport": "_native.explain.report",
    "explain_native": "_native.explain.explain",
    **dict.fromkeys(("Trace", "TraceDiff", "trace_rewrites"), "_trace.trace"),
    **dict.fromkeys(("FeatureStatus", "Status"), "_activation.status"),
    **dict.fromkeys(("disable", "enable", "enabled", "is_enabled", "status"), "_activation.switch"),
}


def __getattr__(name: str) -> object:
    if name in ("graph", "native", "reports"):
        return import_module(f"pytensor_fuse.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(ipython: object) -> None:
    """Switch all features on; called by ``%load_ext pytensor_fuse``.

    Parameters
    ----------
    ipython : InteractiveShell
        The calling shell; unused.
    """
    from pytensor_fuse._activation.switch import enable

    enable()


def unload_ipython_extension(ipython: object) -> None:
    """Switch all features off; called by ``%unload_ext pytensor_fuse``.

    Parameters
    ----------
    ipython : InteractiveShell
        The calling shell; unused.
    """
    from pytensor_fuse._activation.switch import disable

    disable()


waiting.wait_for_pytensor(lambda: import_module("pytensor_fuse._activation.switch"))
