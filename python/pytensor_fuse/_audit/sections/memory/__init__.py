"""The section of an audit about memory: what is allocated, copied, and done in place."""

from pytensor_fuse._audit.sections.memory.analysis import audit_memory
from pytensor_fuse._audit.sections.memory.section import MemorySection

__all__ = ["MemorySection", "audit_memory"]
