"""The section of an audit about Numba's cache: can other processes use what was compiled."""

from pytensor_fuse._audit.sections.cache.analysis import audit_cache
from pytensor_fuse._audit.sections.cache.section import CachingSection

__all__ = ["CachingSection", "audit_cache"]
