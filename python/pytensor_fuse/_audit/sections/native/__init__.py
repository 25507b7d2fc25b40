"""The section of an audit about machine code of this package's own: is it, and if not, why."""

from pytensor_fuse._audit.sections.native.analysis import audit_native
from pytensor_fuse._audit.sections.native.section import NativeSection

__all__ = ["NativeSection", "audit_native"]
