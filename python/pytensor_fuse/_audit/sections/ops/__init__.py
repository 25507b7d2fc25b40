"""The section about ops: the kinds of a graph's ops, and the unknown ones."""

from pytensor_fuse._audit.sections.ops.analysis import audit_ops
from pytensor_fuse._audit.sections.ops.section import OpsSection

__all__ = ["OpsSection", "audit_ops"]
