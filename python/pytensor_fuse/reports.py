"""Classes of the parts of reports: of audits, traces and status.

Reading a report does not require them: they serve annotations, ``isinstance``, and looking up the
meaning of an attribute. `pytensor_fuse.audit` returns a `pytensor_fuse.Audit`:

>>> import pytensor.tensor as pt
>>> from pytensor.graph.fg import FunctionGraph
>>> from pytensor_fuse import audit
>>> from pytensor_fuse.reports import KernelCost, Use
>>> x = pt.vector("x")
>>> found = audit(FunctionGraph([x], [pt.exp(x)]), shapes={"x": (10,)})
>>> isinstance(found.kernels.kernels[0], KernelCost)
True
>>> found.memory.results[0].use is Use.ALLOCATED
True
"""

from pytensor_fuse._accelerators.record import Gain
from pytensor_fuse._audit.sections.cache.record import CacheCulprit
from pytensor_fuse._audit.sections.cache.section import CachingSection
from pytensor_fuse._audit.sections.kernels.record import KernelCost, KernelKind
from pytensor_fuse._audit.sections.kernels.section import KernelsSection
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
from pytensor_fuse._native.explain.records import (
    NativeBuffer,
    NativeCall,
    NativeLoop,
    NativeRegion,
    NativeState,
    NotNative,
    PythonRuns,
)
from pytensor_fuse._pytensor.graphs.provenance import SourceLine
from pytensor_fuse._trace.records import (
    PassTotal,
    RewriterTotal,
    TracedCall,
    TracedPass,
    TracedRewriter,
    TracedRound,
)

__all__ = [
    "CacheCulprit",
    "CachingSection",
    "Copy",
    "CopyKind",
    "Factorization",
    "Gain",
    "InverseProduct",
    "KernelCost",
    "KernelKind",
    "KernelsSection",
    "MatricesSection",
    "MatrixWork",
    "MemorySection",
    "Missed",
    "NativeBuffer",
    "NativeCall",
    "NativeLoop",
    "NativeRegion",
    "NativeSection",
    "NativeState",
    "NotInPlace",
    "NotNative",
    "OpKind",
    "OpsSection",
    "PassTotal",
    "Peak",
    "PythonRuns",
    "Result",
    "RewriterTotal",
    "SharedMatrix",
    "SourceLine",
    "TracedCall",
    "TracedPass",
    "TracedRewriter",
    "TracedRound",
    "UnknownOp",
    "UnknownWork",
    "Use",
]
