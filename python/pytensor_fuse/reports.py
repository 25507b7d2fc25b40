"""Classes of reports and of their parts: of explanations, plans, audits, traces and status.

Reading a report does not require them: they serve annotations, ``isinstance``, and looking up the
meaning of an attribute. Each function of the package returns one of them: `pytensor_fuse.audit`
an `Audit`, `pytensor_fuse.explain` an `Explanation`, `pytensor_fuse.trace` a `Trace`.

>>> import pytensor.tensor as pt
>>> from pytensor.graph.fg import FunctionGraph
>>> from pytensor_fuse import audit
>>> from pytensor_fuse.reports import Audit, KernelCost, Use
>>> x = pt.vector("x")
>>> found = audit(FunctionGraph([x], [pt.exp(x)]), shapes={"x": (10,)})
>>> isinstance(found, Audit), isinstance(found.kernels.kernels[0], KernelCost)
(True, True)
>>> found.memory.results[0].use is Use.ALLOCATED
True
"""

from pytensor_fuse._accelerators.record import Gain
from pytensor_fuse._activation.status import FeatureStatus, Status
from pytensor_fuse._audit.audit import Audit
from pytensor_fuse._audit.sections.cache.record import CacheCulprit
from pytensor_fuse._audit.sections.cache.section import CachingSection
from pytensor_fuse._audit.sections.kernels.record import KernelCost, KernelKind
from pytensor_fuse._audit.sections.kernels.section import KernelsSection
from pytensor_fuse._audit.sections.matrices.explain import (
    MatrixReport,
    MatrixReports,
    MatrixUse,
    NotShared,
)
from pytensor_fuse._audit.sections.matrices.kinds import MatrixPurpose
from pytensor_fuse._audit.sections.matrices.reasons import LinalgReason
from pytensor_fuse._audit.sections.matrices.record import (
    Factorization,
    InverseProduct,
    MatrixWork,
    SharedMatrix,
    UnknownWork,
)
from pytensor_fuse._audit.sections.matrices.section import MatricesSection
from pytensor_fuse._audit.sections.memory.record import (
    Copy,
    CopyKind,
    Missed,
    NotInPlace,
    Peak,
    Result,
    Use,
)
from pytensor_fuse._audit.sections.memory.section import MemorySection
from pytensor_fuse._audit.sections.native.section import NativeSection
from pytensor_fuse._audit.sections.ops.record import OpKind, UnknownOp
from pytensor_fuse._audit.sections.ops.section import OpsSection
from pytensor_fuse._cache.information import CacheInfo, CacheReport
from pytensor_fuse._explain import Explanation
from pytensor_fuse._fusion.why_not import Reason, WhyNot
from pytensor_fuse._identity.frozen import FrozenGraph, FrozenNode, FrozenVariable
from pytensor_fuse._info import Info
from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.reports import JoinReport, JoinReports, JoinsKnown
from pytensor_fuse._native.explain.records import (
    NativeBuffer,
    NativeCall,
    NativeLoop,
    NativeRegion,
    NativeState,
    NotNative,
    PythonRuns,
)
from pytensor_fuse._native.explain.report import NativeReport
from pytensor_fuse._plan.plan import FusionPlan
from pytensor_fuse._plan.records import Kernel, PlanStats
from pytensor_fuse._pytensor.graphs.provenance import SourceLine
from pytensor_fuse._reports.report import Report
from pytensor_fuse._trace.records import (
    PassTotal,
    RewriterTotal,
    TracedCall,
    TracedPass,
    TracedRewriter,
    TracedRound,
)
from pytensor_fuse._trace.trace import Trace, TraceDiff

__all__ = [
    "Audit",
    "CacheCulprit",
    "CacheInfo",
    "CacheReport",
    "CachingSection",
    "Copy",
    "CopyKind",
    "Explanation",
    "Factorization",
    "FeatureStatus",
    "FrozenGraph",
    "FrozenNode",
    "FrozenVariable",
    "FusionPlan",
    "Gain",
    "Info",
    "InverseProduct",
    "JoinReason",
    "JoinReport",
    "JoinReports",
    "JoinsKnown",
    "Kernel",
    "KernelCost",
    "KernelKind",
    "KernelsSection",
    "LinalgReason",
    "MatricesSection",
    "MatrixPurpose",
    "MatrixReport",
    "MatrixReports",
    "MatrixUse",
    "MatrixWork",
    "MemorySection",
    "Missed",
    "NativeBuffer",
    "NativeCall",
    "NativeLoop",
    "NativeRegion",
    "NativeReport",
    "NativeSection",
    "NativeState",
    "NotInPlace",
    "NotNative",
    "NotShared",
    "OpKind",
    "OpsSection",
    "PassTotal",
    "Peak",
    "PlanStats",
    "PythonRuns",
    "Reason",
    "Report",
    "Result",
    "RewriterTotal",
    "SharedMatrix",
    "SourceLine",
    "Status",
    "Trace",
    "TraceDiff",
    "TracedCall",
    "TracedPass",
    "TracedRewriter",
    "TracedRound",
    "UnknownOp",
    "UnknownWork",
    "Use",
    "WhyNot",
]
