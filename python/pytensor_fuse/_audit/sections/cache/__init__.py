"""The section about Numba's cache: whether other processes can reuse the compilation."""

from pytensor_fuse._audit.sections.cache.analysis import audit_cache
from pytensor_fuse._audit.sections.cache.section import CachingSection

__all__ = ["CachingSection", "audit_cache"]
