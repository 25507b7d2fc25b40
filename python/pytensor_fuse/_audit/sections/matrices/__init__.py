"""The section about matrices: work that grows with the cube of their size."""

from pytensor_fuse._audit.sections.matrices.analysis import audit_matrices
from pytensor_fuse._audit.sections.matrices.section import MatricesSection

__all__ = ["MatricesSection", "audit_matrices"]
