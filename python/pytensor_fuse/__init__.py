"""Fast Elemwise fusion for PyTensor, planned in Rust."""

from pytensor_fuse._core import __version__

__all__ = ["__version__"]
