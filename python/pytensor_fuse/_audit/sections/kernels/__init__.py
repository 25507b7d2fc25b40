"""The section about kernels: the computations, reads and writes of each."""

from pytensor_fuse._audit.sections.kernels.analysis import audit_kernels
from pytensor_fuse._audit.sections.kernels.section import KernelsSection

__all__ = ["KernelsSection", "audit_kernels"]
