"""The section about memory: allocations, copies, and work in place."""

from pytensor_fuse._audit.sections.memory.analysis import audit_memory
from pytensor_fuse._audit.sections.memory.section import MemorySection

__all__ = ["MemorySection", "audit_memory"]
