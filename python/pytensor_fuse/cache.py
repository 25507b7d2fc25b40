"""The cache of rewritten graphs: its contents, and how to empty it.

`pytensor_fuse.explain` says for one function why its graph was not taken from the cache, and
``with pytensor_fuse.enabled(False, "cache"):`` compiles without it.

>>> from pytensor_fuse import cache
>>> print(cache.info())  # doctest: +ELLIPSIS
rewrite cache: ...
"""

from pytensor_fuse._cache.information import cache_info as info
from pytensor_fuse._cache.information import clear_cache as clear

__all__ = ["clear", "info"]
