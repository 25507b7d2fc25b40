"""The section of an audit about what a graph is made of, and what of that is not known."""

from pytensor_fuse._audit.sections.ops.analysis import audit_ops
from pytensor_fuse._audit.sections.ops.section import OpsSection

__all__ = ["OpsSection", "audit_ops"]
