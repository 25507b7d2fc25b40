"""The section about this package's machine code: whether the graph is, and the obstacles."""

from pytensor_fuse._audit.sections.native.analysis import audit_native
from pytensor_fuse._audit.sections.native.section import NativeSection

__all__ = ["NativeSection", "audit_native"]
