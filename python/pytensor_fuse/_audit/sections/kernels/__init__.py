"""The section of an audit about kernels: what each computes, reads and writes."""

from pytensor_fuse._audit.sections.kernels.analysis import audit_kernels
from pytensor_fuse._audit.sections.kernels.section import KernelsSection

__all__ = ["KernelsSection", "audit_kernels"]
